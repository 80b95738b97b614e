import { useState } from 'preact/hooks'
import type { AuthSpec } from '../../src/core/method.ts'
import { client } from '../api/client.ts'
import { useRead } from '../api/query.ts'
import { explorer, rolesNeeded } from '../copy/explorer.ts'
import { place, to } from '../lib/router.ts'
import { Field } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { CallForm } from './call-form.tsx'
import type { Schema, Shapes } from './schema.ts'
import './explorer.css'

export type Method = {
  name: string
  summary?: string
  description?: string
  params: { name: string; required?: boolean; schema: Schema }[]
  'x-error-reasons'?: string[]
  'x-side-effects'?: boolean
  'x-auth': AuthSpec
} & Record<string, unknown>

type Description = { methods: Method[]; components: { schemas: Shapes } }

/** Every method with a form and its refusals, from the service's description of itself. */
export default function ExplorerPage() {
  const { query } = place.value
  const [sought, seek] = useState('')
  const document = useRead(
    [null, 'rpc.discover', 'all'],
    async () => (await client['rpc.discover']()) as unknown as Description,
  )
  const chosen = query.get('method')
  return (
    <Page title={explorer.title} about={explorer.about}>
      <Resource of={document} lines={8}>
        {({ methods, components }) => {
          const method = methods.find(({ name }) => name === chosen)
          const found = methods.filter(({ name }) => name.includes(sought.trim().toLowerCase()))
          return (
            <div class="explorer">
              <nav aria-label={explorer.methods} class={method ? 'has-choice' : ''}>
                <Field label={explorer.find} type="search" value={sought} onInput={seek} />
                <ul>
                  {found.map(({ name, 'x-side-effects': changes, 'x-auth': auth }) => (
                    <li key={name}>
                      <a
                        href={to('/api', { method: name })}
                        aria-current={name === chosen ? 'true' : undefined}
                      >
                        {name}
                        {changes && (
                          <>
                            <span class="explorer-mark" aria-hidden="true">
                              !
                            </span>
                            <span class="hidden-text">{explorer.changes}</span>
                          </>
                        )}{' '}
                        <span class="soft">{rolesNeeded(auth)}</span>
                      </a>
                    </li>
                  ))}
                </ul>
                <div role="status">{found.length === 0 && <p class="soft">{explorer.none}</p>}</div>
              </nav>
              {method ? (
                <CallForm key={method.name} method={method} shapes={components.schemas} />
              ) : (
                <p class="soft">{explorer.choose}</p>
              )}
            </div>
          )
        }}
      </Resource>
    </Page>
  )
}

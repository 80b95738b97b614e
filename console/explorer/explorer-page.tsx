import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRead } from '../api/query.ts'
import { explorer } from '../copy/explorer.ts'
import { place, to } from '../lib/router.ts'
import { Field } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { CallForm } from './call-form.tsx'
import './explorer.css'

export type Method = {
  name: string
  summary?: string
  description?: string
  params: { name: string; required?: boolean; schema: unknown }[]
  errors?: { data?: { reason?: string }; message: string }[]
  'x-side-effects'?: boolean
} & Record<string, unknown>

/** Every method with a form and its refusals, from the description that the service makes of itself. */
export default function ExplorerPage() {
  const { query } = place.value
  const [sought, seek] = useState('')
  const document = useRead(
    [null, 'rpc.discover', 'all'],
    async () => (await client['rpc.discover']()) as unknown as { methods: Method[] },
  )
  const chosen = query.get('method')
  return (
    <Page title={explorer.title} about={explorer.about}>
      <Resource of={document} lines={8}>
        {({ methods }) => {
          const method = methods.find(({ name }) => name === chosen)
          return (
            <div class="explorer">
              <nav aria-label={explorer.methods} class={method ? 'has-choice' : ''}>
                <Field label={explorer.find} type="search" value={sought} onInput={seek} />
                <ul>
                  {methods
                    .filter(({ name }) => name.includes(sought.trim().toLowerCase()))
                    .map(({ name }) => (
                      <li key={name}>
                        <a
                          href={to('/api', { method: name })}
                          aria-current={name === chosen ? 'true' : undefined}
                        >
                          {name}
                        </a>
                      </li>
                    ))}
                </ul>
              </nav>
              {method ? (
                <CallForm key={method.name} method={method} />
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

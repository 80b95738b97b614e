import { useState } from 'preact/hooks'
import type { AuthSpec } from '../../src/core/method.ts'
import { client } from '../api/client.ts'
import { useRead } from '../api/query.ts'
import { explorer, rolesNeeded } from '../copy/explorer.ts'
import { me } from '../copy/me.ts'
import { Checkbox, Field } from '../ui/field.tsx'
import { Resource } from '../ui/resource.tsx'

type Method = { name: string; 'x-auth': AuthSpec }

/** The methods of this server and the roles that they need, from which those of a token are chosen. */
export function MethodPicker({
  chosen,
  onChange,
  fault,
}: {
  chosen: readonly string[]
  onChange(chosen: string[]): void
  fault: string | null
}) {
  const [sought, seek] = useState('')
  const methods = useRead([null, 'rpc.discover'], async () => {
    const document = (await client['rpc.discover']()) as unknown as { methods: Method[] }
    return document.methods.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  })
  return (
    <div class="stack-tight">
      <Field label={me.find_method} type="search" value={sought} onInput={seek} fault={fault} />
      <Resource of={methods}>
        {(all) => {
          const found = all.filter(({ name }) => name.includes(sought.trim().toLowerCase()))
          return (
            <div class="method-list">
              {found.map(({ name, 'x-auth': auth }) => (
                <Checkbox
                  key={name}
                  label={
                    <>
                      <code>{name}</code> <span class="soft">{rolesNeeded(auth)}</span>
                    </>
                  }
                  checked={chosen.includes(name)}
                  onChange={(is) => onChange(is ? [...chosen, name] : chosen.filter((one) => one !== name))}
                />
              ))}
              <div role="status">{found.length === 0 && <p class="soft">{explorer.none}</p>}</div>
            </div>
          )
        }}
      </Resource>
    </div>
  )
}

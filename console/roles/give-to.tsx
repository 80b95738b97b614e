import { useEffect, useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { roles } from '../copy/roles.ts'
import { to } from '../lib/router.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'

/** Finds the person; their page asks for the rest. */
export function GiveTo({ role, onClose }: { role: string; onClose(): void }) {
  const [text, setText] = useState('')
  const [query, setQuery] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setQuery(text.trim()), 250)
    return () => clearTimeout(timer)
  }, [text])
  const found = useCall('admin_account_list', { query: query || null, limit: 8 })
  return (
    <Dialog title={roles.give_title(role)} onClose={onClose}>
      <Field
        label={roles.give_find}
        type="search"
        value={text}
        onInput={setText}
        autocomplete="off"
        autofocus
      />
      <Resource
        of={found}
        isEmpty={({ accounts }) => accounts.length === 0}
        empty={<p class="soft">{roles.give_none}</p>}
      >
        {({ accounts }) => (
          <ul class="list">
            {accounts.map(({ account }) => (
              <li key={account.id}>
                <a class="grow" href={to(`/people/${account.id}`, { dialog: 'give', role })}>
                  <Text>{account.username}</Text>
                </a>
                {account.email && (
                  <span class="soft">
                    <Text>{account.email}</Text>
                  </span>
                )}
              </li>
            ))}
          </ul>
        )}
      </Resource>
    </Dialog>
  )
}

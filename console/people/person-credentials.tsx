import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { scopeText } from '../copy/me.ts'
import { people } from '../copy/people.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Id } from '../ui/id.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './person-page.tsx'

export function PersonSessions({ person: { account } }: PartProps) {
  const list = usePages('admin_session_list', { account_id: account.id }, ({ sessions }) => sessions)
  const end = useSend('admin_session_revoke', { spoils: ['admin_session_list', 'admin_account_get'] })
  return (
    <Resource of={list} empty={<p class="soft">{people.no_sessions}</p>}>
      {(rows) => (
        <DataTable
          label={people.tabs.sessions}
          rows={rows}
          keyOf={({ id }) => id}
          hasMore={list.hasMore}
          more={list.more}
          columns={[
            { head: people.session, cell: ({ id }) => <Id id={id} /> },
            { head: people.since, label: people.since, cell: ({ created_at }) => <Time at={created_at} /> },
            { head: people.ends, label: people.ends, cell: ({ expires_at }) => <Until at={expires_at} /> },
            {
              head: people.end,
              end: true,
              width: '64px',
              cell: ({ id }) => (
                <Button
                  small
                  isBusy={end.isBusy}
                  onClick={async () => {
                    if (await end.send({ session_id: id })) toast(people.session_ended)
                  }}
                >
                  {people.end}
                </Button>
              ),
            },
          ]}
        />
      )}
    </Resource>
  )
}

export function PersonTokens({ person: { account } }: PartProps) {
  const list = usePages('admin_token_list', { account_id: account.id }, ({ tokens }) => tokens)
  const revoke = useSend('admin_token_revoke', { spoils: ['admin_token_list', 'admin_account_get'] })
  return (
    <Resource of={list} empty={<p class="soft">{people.no_tokens}</p>}>
      {(rows) => (
        <DataTable
          label={people.tabs.tokens}
          rows={rows}
          keyOf={({ id }) => id}
          hasMore={list.hasMore}
          more={list.more}
          columns={[
            { head: people.token, cell: ({ name }) => <Text>{name}</Text> },
            { head: people.may_do, cell: ({ scope }) => scopeText(scope) },
            {
              head: people.last_used,
              label: people.last_used,
              cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : people.not_used),
            },
            {
              head: people.ends,
              label: people.ends,
              cell: ({ expires_at }) => (expires_at ? <Until at={expires_at} /> : words.never),
            },
            {
              head: people.revoke,
              end: true,
              width: '80px',
              cell: ({ id, name }) => (
                <Button
                  small
                  isBusy={revoke.isBusy}
                  onClick={async () => {
                    if (await revoke.send({ token_id: id })) toast(people.token_revoked)
                  }}
                >
                  {people.revoke}
                  <span class="hidden-text">{name}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
    </Resource>
  )
}

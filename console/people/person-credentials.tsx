import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { scopeText } from '../copy/me.ts'
import { people } from '../copy/people.ts'
import { provenBy, security } from '../copy/security.ts'
import { distance } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { type Concerned, Confirm } from '../ui/dialog.tsx'
import { Id, shortId } from '../ui/id.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './person-page.tsx'

export function PersonSessions({ person: { account } }: PartProps) {
  const list = usePages('admin_session_list', { account_id: account.id }, ({ sessions }) => sessions)
  const [ending, setEnding] = useState<string | null>(null)
  return (
    <>
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
              {
                head: security.signed_in_with,
                label: security.signed_in_with,
                cell: ({ methods }) => provenBy(methods),
              },
              { head: people.since, label: people.since, cell: ({ created_at }) => <Time at={created_at} /> },
              { head: people.ends, label: people.ends, cell: ({ expires_at }) => <Until at={expires_at} /> },
              {
                head: people.end,
                end: true,
                width: '64px',
                cell: ({ id }) => (
                  <Button small onClick={() => setEnding(id)}>
                    {people.end}
                    <span class="hidden-text">{shortId(id)}</span>
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Resource>
      {ending && <EndSession session_id={ending} account={account} onClose={() => setEnding(null)} />}
    </>
  )
}

type EndProps = { session_id: string; account: Concerned; onClose(): void }

function EndSession({ session_id, account, onClose }: EndProps) {
  const end = useSend('admin_session_revoke', {
    spoils: ['admin_session_list', 'admin_account_get'],
    done: () => toast(people.session_ended),
  })
  const confirm = async (): Promise<void> => {
    if (await end.send({ session_id })) onClose()
  }
  return (
    <Confirm
      title={people.end_session_question(shortId(session_id), account.username)}
      whom={account}
      verb={people.end_session}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={end}
    >
      <p>{people.end_session_about}</p>
    </Confirm>
  )
}

export function PersonTokens({ person: { account } }: PartProps) {
  const list = usePages('admin_token_list', { account_id: account.id }, ({ tokens }) => tokens)
  const [ending, end] = useState<Token | null>(null)
  return (
    <>
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
                cell: (one) => (
                  <Button small onClick={() => end(one)}>
                    {people.revoke}
                    <span class="hidden-text">{one.name}</span>
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Resource>
      {ending && <Revoke token={ending} account={account} onClose={() => end(null)} />}
    </>
  )
}

type Token = Output<'admin_token_list'>['tokens'][number]

function Revoke({ token, account, onClose }: { token: Token; account: Concerned; onClose(): void }) {
  const revoke = useSend('admin_token_revoke', {
    spoils: ['admin_token_list', 'admin_account_get'],
    done: () => toast(people.token_revoked),
  })
  const { name, last_used_at, last_used_ip } = token
  const confirm = async (): Promise<void> => {
    if (await revoke.send({ token_id: token.id })) onClose()
  }
  return (
    <Confirm
      title={people.revoke_question(name)}
      whom={account}
      verb={people.revoke}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={revoke}
    >
      <p>{last_used_at ? people.revoke_used(distance(last_used_at), last_used_ip) : people.revoke_unused}</p>
    </Confirm>
  )
}

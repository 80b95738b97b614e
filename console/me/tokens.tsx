import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { me, scopeText } from '../copy/me.ts'
import { place, setQuery } from '../lib/router.ts'
import { distance, isPast } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Badge } from '../ui/note.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { CreateToken } from './create-token.tsx'

type Token = Output<'account_token_list'>['tokens'][number]

export function Tokens() {
  const tokens = useCall('account_token_list', {})
  const [revoking, setRevoking] = useState<Token | null>(null)
  const open = (): void => setQuery({ dialog: 'token' })
  const create = (
    <Button kind="primary" icon="plus" shortcut="n" onClick={open}>
      {me.new_token}
    </Button>
  )
  return (
    <section class="section">
      <header>
        <p class="soft">{me.tokens_about}</p>
        <span class="push">{create}</span>
      </header>
      <Resource
        of={tokens}
        isEmpty={({ tokens }) => tokens.length === 0}
        empty={
          <Empty icon="key-round" title={me.no_tokens}>
            {me.no_tokens_about}
          </Empty>
        }
      >
        {({ tokens }) => (
          <DataTable
            label={me.tabs.tokens}
            rows={tokens}
            keyOf={({ id }) => id}
            columns={[
              { head: me.token, cell: ({ name }) => <Text>{name}</Text> },
              { head: me.scope, cell: ({ scope }) => scopeText(scope) },
              { head: me.last_used, label: me.last_used, cell: (one) => <LastUsed token={one} /> },
              { head: me.ends, label: me.ends, cell: (one) => <Ends token={one} /> },
              {
                head: me.revoke,
                end: true,
                width: '80px',
                cell: (one) => (
                  <Button small onClick={() => setRevoking(one)}>
                    {me.revoke}
                    <span class="hidden-text">
                      <Text>{one.name}</Text>
                    </span>
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Resource>
      {place.value.query.get('dialog') === 'token' && (
        <CreateToken onClose={() => setQuery({ dialog: null })} />
      )}
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(null)} />}
    </section>
  )
}

const LastUsed = ({ token: { last_used_at, last_used_ip } }: { token: Token }) =>
  last_used_at === null ? (
    <span class="soft">{me.not_used}</span>
  ) : (
    <span>
      <Time at={last_used_at} /> {last_used_ip && <span class="soft">{me.from_address(last_used_ip)}</span>}
    </span>
  )

function Ends({ token }: { token: Token }) {
  if (token.expires_at === null) return <span>{words.never}</span>
  return isPast(token.expires_at) ? <Badge kind="warn">{me.expired}</Badge> : <Until at={token.expires_at} />
}

function Revoke({ token, onClose }: { token: Token; onClose(): void }) {
  const revoke = useSend('account_token_revoke', {
    spoils: ['account_token_list'],
    done: () => toast(me.revoked),
  })
  const { name, last_used_at, last_used_ip } = token
  const confirm = async (): Promise<void> => {
    if (await revoke.send({ token_id: token.id })) onClose()
  }
  return (
    <Confirm
      title={me.revoke_question(name)}
      verb={me.revoke_label(name)}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={revoke}
    >
      <p>{last_used_at ? me.revoke_used(distance(last_used_at), last_used_ip) : me.revoke_unused}</p>
    </Confirm>
  )
}

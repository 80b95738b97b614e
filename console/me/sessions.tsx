import { useState } from 'preact/hooks'
import { call, type Output } from '../api/client.ts'
import { spoil, useCall } from '../api/query.ts'
import { useRun, useTold } from '../api/run.ts'
import { useSend } from '../api/send.ts'
import { forgetSession, tellTabs } from '../api/session.ts'
import { me } from '../copy/me.ts'
import { provenBy, security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Id, shortId } from '../ui/id.tsx'
import { Resource } from '../ui/resource.tsx'
import { Time, Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

type Session = Output<'account_session_list'>['sessions'][number]

export function Sessions() {
  const sessions = useCall('account_session_list', {})
  const cap = useCall('registry_list', {}).data?.caps.max_sessions
  const [isAsking, ask] = useState(false)
  const all = sessions.data?.sessions ?? []
  return (
    <section class="section">
      <header>
        <p class="soft">
          {me.sessions_about} {me.of_most(all.length, cap)}
        </p>
        <span class="row push">
          <EndOthers sessions={all} />
          <Button kind="danger" onClick={() => ask(true)}>
            {me.sign_out_everywhere}
          </Button>
        </span>
      </header>
      <Resource of={sessions}>
        {({ sessions }) => (
          <DataTable
            label={me.tabs.sessions}
            rows={sessions.toSorted((a, b) => Number(b.current) - Number(a.current))}
            keyOf={({ id }) => id}
            columns={[
              {
                head: me.session,
                cell: ({ id, current }) => (current ? <strong>{me.this_device}</strong> : <Id id={id} />),
              },
              {
                head: security.signed_in_with,
                label: security.signed_in_with,
                cell: ({ methods }) => provenBy(methods),
              },
              { head: me.since, label: me.since, cell: ({ created_at }) => <Time at={created_at} /> },
              { head: me.ends, label: me.ends, cell: ({ expires_at }) => <Until at={expires_at} /> },
              {
                head: me.end,
                end: true,
                width: '64px',
                cell: (one) => !one.current && <End session={one} />,
              },
            ]}
          />
        )}
      </Resource>
      {isAsking && <EndAll count={all.length} onClose={() => ask(false)} />}
    </section>
  )
}

function EndAll({ count, onClose }: { count: number; onClose(): void }) {
  const end = useSend('account_session_revoke_all', {
    done: () => {
      tellTabs('signed_out')
      forgetSession()
    },
  })
  return (
    <Confirm
      title={me.sign_out_question}
      verb={me.sign_out_everywhere}
      onConfirm={() => void end.send({})}
      onClose={onClose}
      of={end}
    >
      <p>{me.sign_out_consequences(count)}</p>
    </Confirm>
  )
}

/** Ends them one after the other; one that has already ended is fine. */
function EndOthers({ sessions }: { sessions: readonly Session[] }) {
  const others = sessions.filter(({ current }) => !current)
  const end = useRun(
    async () => {
      for (const { id } of others) await call('account_session_revoke', { session_id: id }, null)
      spoil('account_session_list')
    },
    { done: () => toast(me.others_ended) },
  )
  useTold(end.error)
  if (others.length === 0) return null
  return (
    <Button isBusy={end.isBusy} wait={end.wait} onClick={() => void end.send(undefined)}>
      {me.end_others}
    </Button>
  )
}

function End({ session: { id } }: { session: Session }) {
  const end = useSend('account_session_revoke', {
    spoils: ['account_session_list'],
    done: () => toast(me.session_ended),
  })
  useTold(end.error)
  return (
    <Button small isBusy={end.isBusy} wait={end.wait} onClick={() => void end.send({ session_id: id })}>
      {me.end}
      <span class="hidden-text">{shortId(id)}</span>
    </Button>
  )
}

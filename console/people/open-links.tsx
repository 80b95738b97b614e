import { ActorName } from '../api/actor-name.tsx'
import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { personSignIn } from '../copy/person-sign-in.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Fault } from '../ui/fault.tsx'
import { Resource } from '../ui/resource.tsx'
import { Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

/** One-time links of an account that still work. */
export function OpenLinks({ account_id }: { account_id: string }) {
  const list = usePages('admin_ticket_list', { account_id, open_only: true }, ({ tickets }) => tickets)
  const revoke = useSend('admin_ticket_revoke', {
    spoils: ['admin_ticket_list'],
    done: () => toast(personSignIn.revoked),
  })
  return (
    <section class="section">
      <h2>{personSignIn.links}</h2>
      <Fault text={revoke.error && explain(revoke.error)} />
      <Resource of={list} empty={<p class="soft">{personSignIn.no_links}</p>}>
        {(rows) => (
          <DataTable
            label={personSignIn.links}
            rows={rows}
            keyOf={({ id }) => id}
            hasMore={list.hasMore}
            more={list.more}
            columns={[
              { head: personSignIn.link, cell: ({ purpose }) => personSignIn.purposes[purpose] },
              {
                head: personSignIn.delivery,
                label: personSignIn.delivery,
                cell: ({ delivery }) => personSignIn.deliveries[delivery],
              },
              {
                head: personSignIn.made_by,
                label: personSignIn.made_by,
                cell: ({ created_by }) => (created_by ? <ActorName id={created_by} /> : personSignIn.nobody),
              },
              {
                head: personSignIn.ends,
                label: personSignIn.ends,
                cell: ({ expires_at }) => <Until at={expires_at} />,
              },
              {
                head: personSignIn.revoke,
                end: true,
                width: '80px',
                cell: ({ id, purpose }) => (
                  <Button
                    small
                    isBusy={revoke.isBusy}
                    wait={revoke.wait}
                    onClick={() => void revoke.send({ ticket_id: id })}
                  >
                    {personSignIn.revoke}
                    <span class="hidden-text">{personSignIn.purposes[purpose]}</span>
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Resource>
    </section>
  )
}

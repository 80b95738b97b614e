import { useState } from 'preact/hooks'
import { client, type Output } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { freshly, useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

type Link = Output<'account_sign_in_get'>['links'][number]
type Provider = { id: string; label: string }

/** Identities at providers: at most one of each. */
export function Links({ links, providers }: { links: readonly Link[]; providers: readonly Provider[] }) {
  const [asked, ask] = useState<Link | null>(null)
  const others = providers.filter(({ id }) => !links.some(({ provider }) => provider === id))
  if (links.length + others.length === 0) return null
  return (
    <section class="section">
      <h2>{security.links}</h2>
      <p class="soft">{security.links_about}</p>
      {links.length > 0 && (
        <DataTable
          label={security.links}
          rows={links}
          keyOf={({ id }) => id}
          columns={[
            { head: security.provider, cell: ({ label }) => <Text>{label}</Text> },
            {
              head: security.since,
              label: security.since,
              cell: ({ created_at }) => <Time at={created_at} />,
            },
            {
              head: security.last_used,
              label: security.last_used,
              cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : security.not_used),
            },
            {
              head: security.unlink,
              end: true,
              width: '80px',
              // Without a provider the server does not have the method.
              cell: (link) =>
                providers.length > 0 && (
                  <Button small onClick={() => ask(link)}>
                    {security.unlink}
                    <span class="hidden-text">{link.label}</span>
                  </Button>
                ),
            },
          ]}
        />
      )}
      {others.map((provider) => (
        <AddLink key={provider.id} provider={provider} />
      ))}
      {asked && <RemoveLink link={asked} onClose={() => ask(null)} />}
    </section>
  )
}

/** Leaves the console; the provider sends the browser back to `/admin/callback`. */
function AddLink({ provider: { id, label } }: { provider: Provider }) {
  const start = useRun(() => freshly(() => client.account.oidc_start({ provider: id, intent: 'link' })))
  return (
    <>
      <Fault text={start.error && explain(start.error)} />
      <div>
        <Button
          isBusy={start.isBusy}
          wait={start.wait}
          onClick={async () => {
            const begun = await start.send(undefined)
            if (begun) location.assign(begun.url)
          }}
        >
          {security.link_add(label)}
        </Button>
      </div>
    </>
  )
}

function RemoveLink({ link: { id, label }, onClose }: { link: Link; onClose(): void }) {
  const remove = useSend('account_link_remove', {
    spoils: ['account_sign_in_get'],
    done: () => toast(security.link_removed),
  })
  const confirm = async (): Promise<void> => {
    if (await remove.send({ link_id: id })) onClose()
  }
  return (
    <Confirm
      title={security.link_question(label)}
      verb={security.unlink}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={remove}
    >
      <p>{security.link_remove_about}</p>
    </Confirm>
  )
}

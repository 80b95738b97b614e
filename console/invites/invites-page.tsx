import { call, type Output } from '../api/client.ts'
import { spoil, usePages } from '../api/query.ts'
import { useTold } from '../api/run.ts'
import { undo, useSend } from '../api/send.ts'
import { server } from '../api/server.ts'
import { acting } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { invites } from '../copy/invites.ts'
import { place, setQuery } from '../lib/router.ts'
import { isPast } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { copyText } from '../ui/id.tsx'
import { Menu } from '../ui/menu.tsx'
import { Badge } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { showSecret } from '../ui/secret.tsx'
import { Text } from '../ui/text.tsx'
import { Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { CreateInvite, linkOf } from './create-invite.tsx'

type Invite = Output<'invite_list'>['invites'][number]

export default function InvitesPage() {
  const list = usePages('invite_list', {}, ({ invites }) => invites)
  const create = (
    <Button kind="primary" icon="mail-plus" shortcut="n" onClick={() => setQuery({ dialog: 'invite' })}>
      {invites.invite}
    </Button>
  )
  return (
    <Page title={invites.title} about={invites.about[server.invite_claim]} actions={create}>
      <Resource
        of={list}
        empty={
          <Empty icon="mail" title={invites.none}>
            {invites.none_about}
          </Empty>
        }
      >
        {(rows) => (
          <DataTable
            label={invites.title}
            rows={rows}
            keyOf={({ id }) => id}
            hasMore={list.hasMore}
            more={list.more}
            columns={[
              {
                head: invites.for,
                cell: ({ email, username }) => (
                  <Text long>{[email, username].filter(Boolean).join(', ')}</Text>
                ),
              },
              { head: invites.state, cell: (one) => <State invite={one} /> },
              { head: invites.by, label: invites.by, cell: ({ created_by_username }) => created_by_username },
              {
                head: invites.ends,
                label: invites.ends,
                cell: ({ expires_at }) => (expires_at ? <Until at={expires_at} /> : words.never),
              },
              {
                head: words.more_actions,
                end: true,
                width: '40px',
                cell: (one) => !one.claimed_at && <Actions invite={one} />,
              },
            ]}
          />
        )}
      </Resource>
      {place.value.query.get('dialog') === 'invite' && (
        <CreateInvite onClose={() => setQuery({ dialog: null })} />
      )}
    </Page>
  )
}

function State({ invite }: { invite: Invite }) {
  const { claimed_at, claimed_by_username } = invite
  if (claimed_at)
    return (
      <Badge kind="ok">{claimed_by_username ? invites.used_by(claimed_by_username) : invites.used}</Badge>
    )
  return isPast(invite.expires_at) ? (
    <Badge>{invites.ended}</Badge>
  ) : (
    <Badge kind="accent">{invites.waiting}</Badge>
  )
}

function Actions({ invite }: { invite: Invite }) {
  const spoils = ['invite_list'] as const
  const remove = useSend('invite_delete', {
    spoils,
    // One that has ended cannot be made again.
    done: () =>
      toast(
        invites.deleted,
        isPast(invite.expires_at) ? undefined : { label: words.undo, run: () => void undo(makeAgain) },
      ),
  })
  const send = useSend('invite_send', {
    done: ({ link }) => {
      if (link) showSecret(invites.link_ready, link)
      else if (email) toast(invites.sent(email))
    },
  })
  const { email, username, expires_at, id: invite_id } = invite
  useTold(remove.error ?? send.error)
  const makeAgain = async (): Promise<void> => {
    await call('invite_create', { email, username, expires_at }, acting.peek())
    spoil(...spoils)
  }
  const sendAgain = (reveal: boolean) => void send.send({ invite_id, reveal })
  const byLink = {
    match: { label: invites.copy_link, onClick: () => void copyText(linkOf(invite)) },
    code: { label: invites.new_link, onClick: () => sendAgain(true) },
    verified_email: null,
  }[server.invite_claim]
  return (
    <Menu
      label={invites.actions_for([email, username].filter(Boolean).join(', '))}
      items={[
        ...(byLink ? [byLink] : []),
        ...(server.features.mail && email
          ? [{ label: invites.send_again, onClick: () => sendAgain(false) }]
          : []),
        {
          label: invites.delete,
          danger: true,
          onClick: () => void remove.send({ invite_id }),
        },
      ]}
    />
  )
}

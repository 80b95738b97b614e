import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import type { Output } from '../api/client.ts'
import { OfferState } from '../api/offer-state.tsx'
import { type Pages, useCall, usePages } from '../api/query.ts'
import { useTold } from '../api/run.ts'
import { useSend } from '../api/send.ts'
import { isAdmin, type Session, signedIn } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { inbox, stateOf } from '../copy/inbox.ts'
import { to } from '../lib/router.ts'
import { serverNow } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { shortId } from '../ui/id.tsx'
import { Empty, More, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

type Offer = Output<'role_grant_offer_history'>['offers'][number]

/** Offers to the account and by its actors, with what became of them. */
export function History() {
  const { account } = signedIn.value as Session
  const list = usePages('role_grant_offer_history', {}, ({ offers }) => offers)
  const names = useRecipients(account.id, list)
  return (
    <Offers
      of={list}
      label={inbox.history}
      empty={<Empty icon="history" title={inbox.no_history} />}
      columns={[
        ...what,
        {
          head: inbox.from,
          label: inbox.from,
          cell: (one) =>
            one.from_account_id === account.id ? inbox.you : <ActorName id={one.from_actor_id} />,
        },
        recipient(account.id, names),
        ...became,
      ]}
    />
  )
}

/** Those that the account made; one that waits for an answer can be retracted. */
export function Sent() {
  const { account, actor } = signedIn.value as Session
  const list = usePages('role_grant_offer_history', {}, ({ offers }) =>
    offers.filter((one) => one.from_account_id === account.id),
  )
  const names = useRecipients(account.id, list)
  const none = list.hasMore ? (
    <p class="soft">{inbox.none_lately}</p>
  ) : (
    <Empty icon="send" title={inbox.none_sent}>
      {inbox.none_sent_about}
    </Empty>
  )
  const sent = (
    <Offers
      of={list}
      label={inbox.sent}
      empty={none}
      columns={[
        ...what,
        recipient(account.id, names),
        ...became,
        {
          head: inbox.take_back,
          end: true,
          width: '92px',
          cell: (one) =>
            stateOf(one, serverNow()).label === 'waiting' &&
            one.from_actor_id === actor?.id && <TakeBack offer={one} />,
        },
      ]}
    />
  )
  // The table reads on as long as rows come, but a page may hold only offers of others.
  return (
    <>
      {sent}
      <More of={list} verb={words.look_back} />
    </>
  )
}

type OffersProps = {
  of: Pages<Offer>
  label: string
  empty: ComponentChildren
  columns: readonly Column<Offer>[]
}

function Offers({ of: list, label, empty, columns }: OffersProps) {
  return (
    <Resource of={list} empty={empty}>
      {(rows) => (
        <DataTable
          label={label}
          rows={rows}
          keyOf={({ offer_id }) => offer_id}
          hasMore={list.hasMore}
          more={list.more}
          columns={columns}
        />
      )}
    </Resource>
  )
}

const what: readonly Column<Offer>[] = [
  { head: inbox.role, cell: ({ role }) => <strong>{role}</strong> },
  {
    head: inbox.where,
    cell: ({ scope_id, scope_kind }) => (scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere),
  },
]
const recipient = (own: string, names: Names): Column<Offer> => ({
  head: inbox.to,
  label: inbox.to,
  cell: (one) => <Recipient offer={one} own={own} names={names} />,
})
const became: readonly Column<Offer>[] = [
  { head: inbox.since, label: inbox.since, cell: ({ created_at }) => <Time at={created_at} /> },
  { head: inbox.state, cell: (one) => <OfferState offer={one} /> },
]

type Names = ReadonlyMap<string | null, string | null>
/** The audit log, which admins may read, names the accounts of the latest offers in one call; offers hold only ids. */
function useRecipients(account_id: string, { data: offers }: Pages<Offer>): Names {
  const wanted = { account_id, event_types: ['role_grant_offer_create'], outcome: 'success' as const }
  const made = useCall('audit_log_list', { ...wanted, limit: 200 }, { enabled: isAdmin.value, fresh: true })
  const names = new Map(made.data?.events.map((one) => [one.target_account_id, one.target_username]))
  const newest = offers?.[0]
  const isUnnamed = newest?.from_account_id === account_id && !names.has(newest.to_account_id)
  // An offer that was made in another window appears while this one is open.
  useEffect(() => void (made.data && isUnnamed && made.retry()), [newest?.offer_id])
  return names
}

type RecipientProps = { offer: Offer; own: string; names: Names }
/** An offer to a person names an actor only if there are several to choose from. */
function Recipient({ offer: { to_account_id, to_actor_id }, own, names }: RecipientProps) {
  if (to_account_id === own) return inbox.you
  if (to_actor_id) return <ActorName id={to_actor_id} />
  const name = <Text>{names.get(to_account_id) ?? shortId(to_account_id)}</Text>
  return isAdmin.value ? <a href={to(`/people/${to_account_id}`)}>{name}</a> : name
}

function TakeBack({ offer: { offer_id, role } }: { offer: Offer }) {
  const retract = useSend('role_grant_offer_retract', {
    spoils: ['role_grant_offer_history'],
    done: () => toast(inbox.taken_back(role)),
  })
  useTold(retract.error)
  return (
    <Button small isBusy={retract.isBusy} wait={retract.wait} onClick={() => void retract.send({ offer_id })}>
      {inbox.take_back}
      <span class="hidden-text">{role}</span>
    </Button>
  )
}

import { useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import type { Output } from '../api/client.ts'
import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { loadSession, type Session, signedIn } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { inbox } from '../copy/inbox.ts'
import { useDraft } from '../lib/draft.ts'
import { shortTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { TextArea } from '../ui/field.tsx'
import { shortId } from '../ui/id.tsx'
import { Empty, More, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

type Offer = Output<'role_grant_offer_list'>['offers'][number]
const spoils = ['role_grant_offer_list', 'role_grant_offer_history'] as const

export function Waiting() {
  const list = usePages('role_grant_offer_list', {}, ({ offers }) => offers)
  return (
    <>
      <Resource
        of={list}
        empty={
          <Empty icon="inbox" title={inbox.none}>
            {inbox.none_about}
          </Empty>
        }
      >
        {(offers) => (
          <ul class="stack">
            {offers.map((offer) => (
              <li key={offer.offer_id} class="card">
                <One offer={offer} />
              </li>
            ))}
          </ul>
        )}
      </Resource>
      <More of={list} />
    </>
  )
}

/** Accepted by the actor that it is for, whoever acts now, or else by the acting one. */
function One({ offer }: { offer: Offer }) {
  const { actors, actor } = signedIn.value as Session
  const [isAsking, ask] = useState(false)
  const taker = actors.find(({ id }) => id === (offer.to_actor_id ?? actor?.id))
  const accept = useSend('role_grant_offer_accept', {
    spoils,
    as: taker?.id,
    done: () => {
      toast(inbox.accepted(offer.role))
      void loadSession()
    },
  })
  return (
    <div class="stack-tight">
      <div class="row">
        <div class="grow stack-tight">
          <h2>
            {offer.role} <span class="soft">{whereOf(offer)}</span>
          </h2>
          <p class="soft">
            {inbox.by} <ActorName id={offer.from_actor_id} />, <Time at={offer.created_at} />,{' '}
            {inbox.answer_by} {shortTime(offer.expires_at)}
            {offer.grant_expires_at && `, ${inbox.role_ends} ${shortTime(offer.grant_expires_at)}`}
          </p>
          {offer.message && (
            <blockquote>
              <Text long>{offer.message}</Text>
            </blockquote>
          )}
        </div>
        <span class="row push">
          <Button onClick={() => ask(true)}>
            {inbox.decline}
            <span class="hidden-text">{offer.role}</span>
          </Button>
          {taker && (
            <Button
              kind="primary"
              isBusy={accept.isBusy}
              wait={accept.wait}
              onClick={() => void accept.send({ offer_id: offer.offer_id })}
            >
              {actors.length > 1 ? <Text>{inbox.accept_as(taker.name)}</Text> : inbox.accept}
              <span class="hidden-text">{offer.role}</span>
            </Button>
          )}
        </span>
      </div>
      <Fault text={accept.error && explain(accept.error)} />
      {isAsking && <Decline offer={offer} onClose={() => ask(false)} />}
    </div>
  )
}

const whereOf = ({ scope_kind, scope_id }: Offer): string =>
  scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere

function Decline({ offer, onClose }: { offer: Offer; onClose(): void }) {
  const { form, set, isDirty } = useDraft(`decline ${offer.offer_id}`, { reason: '' })
  const decline = useSend('role_grant_offer_decline', {
    spoils,
    done: () => toast(inbox.declined(offer.role)),
  })
  const confirm = async (): Promise<void> => {
    if (await decline.send({ offer_id: offer.offer_id, reason: form.reason.trim() || null })) onClose()
  }
  return (
    <Confirm
      title={inbox.decline_title(offer.role)}
      verb={inbox.decline}
      kind="primary"
      onConfirm={() => void confirm()}
      onClose={onClose}
      isDirty={isDirty}
      of={decline}
    >
      <TextArea
        label={inbox.reason}
        value={form.reason}
        onInput={(reason) => set({ reason })}
        maxlength={500}
        rows={2}
      />
    </Confirm>
  )
}

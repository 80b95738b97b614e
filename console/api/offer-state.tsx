import { stateOf } from '../copy/inbox.ts'
import { serverNow } from '../lib/time.ts'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'
import type { Output } from './client.ts'

/** What became of an offer, with the reason given by the person who declined it. */
export function OfferState({ offer }: { offer: Output<'role_grant_offer_history'>['offers'][number] }) {
  const { kind, label } = stateOf(offer, serverNow())
  return (
    <>
      <Badge kind={kind}>{label}</Badge>
      {offer.decline_reason && (
        <p class="soft">
          <Text long>{offer.decline_reason}</Text>
        </p>
      )}
    </>
  )
}

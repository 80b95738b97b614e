/** Offers of roles: to oneself, made by oneself, and what became of them. */
export const inbox = {
  title: 'Inbox',
  parts: 'Kinds of offers',
  waiting: 'Waiting',
  sent: 'Sent',
  history: 'History',
  none: 'No offers',
  none_about: 'A role offered to you appears here at once.',
  no_history: 'No offers yet',
  none_sent: 'No offers sent',
  none_sent_about: 'A role that you offer to somebody appears here, until it is answered and after.',
  none_lately: 'You made none of the latest offers.',
  from: 'From',
  by: 'from',
  answer_by: 'answer by',
  role_ends: 'role ends',
  accept: 'Accept',
  accept_as: (name: string) => `Accept as ${name}`,
  decline: 'Decline',
  decline_title: (role: string) => `Decline ${role}?`,
  reason: 'Reason, shown to the person who offered it',
  accepted: (role: string) => `You now hold ${role}.`,
  declined: (role: string) => `You declined ${role}.`,
  take_back: 'Take back',
  taken_back: (role: string) => `The offer of ${role} was taken back.`,
  role: 'Role',
  where: 'Where',
  state: 'State',
  since: 'Offered',
  to: 'To',
  you: 'you',
}

type Stamps = {
  accepted_at: string | null
  declined_at: string | null
  retracted_at: string | null
  superseded_at: string | null
  expires_at: string
}
type State = { label: string; kind: 'ok' | 'warn' | 'plain' | 'accent' }

/** What became of an offer by `now`, in milliseconds. */
export function stateOf(offer: Stamps, now: number): State {
  if (offer.accepted_at) return { label: 'accepted', kind: 'ok' }
  if (offer.declined_at) return { label: 'declined', kind: 'warn' }
  if (offer.retracted_at) return { label: 'taken back', kind: 'plain' }
  if (offer.superseded_at) return { label: 'ended', kind: 'plain' }
  if (Date.parse(offer.expires_at) <= now) return { label: 'not answered', kind: 'plain' }
  return { label: 'waiting', kind: 'accent' }
}

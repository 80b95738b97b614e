import type { Stage } from '../stage.ts'
import type { Account, Actor, Grant, Offer } from './roles.ts'

/** What the model expects of a call, in the form in which the service shows it. */

/** An audit row, but for its time, number and address. */
export type Row = {
  event_type: string
  outcome: string
  actor_id: string | null
  account_id: string | null
  target_actor_id: string | null
  target_account_id: string | null
  metadata: object | null
}
export type Told = { account_id: string; method: string; params: object }
/** What a call leaves: its answer, and its audit rows and notifications in order. There must be no others. */
export type Left = { answer?: object; rows: Row[]; told: Told[] }
/** What a call has answered, and the rows that it has written. */
export type Seen<A = object> = { answer: A; rows: Row[] }

export type Plan = {
  call(stage: Stage): Promise<unknown>
  /** `ok` or the reason of the refusal. */
  outcome: string
  /** Changes the world as the call must, a refused one too. Left out: the call leaves nothing. */
  effect?(seen: Seen<never>): Left
}
/** A change that happens without a call. */
export type Event = { happen(stage: Stage): Promise<unknown> }

/** The calls without a request say who they come from. */
export const operator = { via: 'model' }

export const refused = (outcome: string, ...rows: Row[]): Pick<Plan, 'outcome' | 'effect'> => ({
  outcome,
  ...(rows.length > 0 && { effect: () => ({ rows, told: [] }) }),
})

export const row = (
  event_type: string,
  by: Actor | null,
  { account, actor }: { account?: Account; actor?: Actor | null },
  metadata: object | null,
  outcome = 'success',
): Row => ({
  event_type,
  outcome,
  actor_id: by?.id ?? null,
  account_id: by?.account.id ?? null,
  target_actor_id: actor?.id ?? null,
  target_account_id: (account ?? actor?.account)?.id ?? null,
  metadata,
})

/** What each row about an offer or a grant says of it. */
export const ofOffer = ({ id, role, scope }: Offer) => ({ offer_id: id, role, ...scope })
export const ofGrant = ({ id, role, scope }: Grant) => ({ role, role_grant_id: id, ...scope })

/** A time that has come: `unstamped` makes those of the service equal to it. */
const stamped = 'stamped'

/** The eighteen keys of an offer. */
export const wireOffer = (offer: Offer) => ({
  offer_id: offer.id,
  from_actor_id: offer.from.id,
  from_account_id: offer.from.account.id,
  to_account_id: offer.to.id,
  to_actor_id: offer.named?.id ?? null,
  role: offer.role,
  ...offer.scope,
  message: offer.message,
  created_at: offer.created_at,
  expires_at: offer.expires_at,
  grant_expires_at: offer.until,
  accepted_at: offer.end === 'accepted' ? stamped : null,
  declined_at: offer.end === 'declined' ? stamped : null,
  decline_reason: offer.decline_reason,
  retracted_at: offer.end === 'retracted' ? stamped : null,
  superseded_at: offer.end === 'superseded' ? stamped : null,
  resulting_role_grant_id: offer.grant?.id ?? null,
})

const stamps = ['accepted_at', 'declined_at', 'retracted_at', 'superseded_at', 'revoked_at']

/** The same value with all stamps alike, since the model does not know their times. */
export const unstamped = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value), (key, one) => (stamps.includes(key) && one !== null ? stamped : one))

/** Marks the offers as superseded: a row and a notification to its grantor for each, by ascending id. */
export function supersede(
  offers: readonly Offer[],
  {
    by,
    reason,
    cause_id,
    ...via
  }: { by: Actor | null; reason: string; cause_id: string | null; via?: string },
): Left {
  const left: Left = { rows: [], told: [] }
  for (const offer of [...offers].sort(byId)) {
    offer.end = 'superseded'
    const metadata = { ...ofOffer(offer), reason, cause_id, ...via }
    left.rows.push(row('role_grant_offer_supersede', by, { account: offer.to, actor: offer.named }, metadata))
    left.told.push(
      tell(offer.from.account, 'role_grant_offer_supersede', { offer: wireOffer(offer), reason, cause_id }),
    )
  }
  return left
}

export const tell = ({ id }: Account, method: string, params: object): Told => ({
  account_id: id,
  method,
  params,
})

export const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1)

/** What several changes leave one after the other. */
export const inTurn = (...all: Left[]): Left => ({
  rows: all.flatMap(({ rows }) => rows),
  told: all.flatMap(({ told }) => told),
})

import fc from 'fast-check'
import { actorCount } from '../stage.ts'
import type { roleNames, scopes, times } from './roles.ts'

/** Moves as data, so that a counter-example can be read and shrunk. Accounts, actors and rows are picked by number. */

export const actor = fc.nat(actorCount - 1)
const account = fc.nat(2)
/** Picks a row of the world, however many there are. */
const nth = fc.nat(19)
/** Whether to pick among the rows that have not ended. */
const isOpen = fc.constantFrom(true, true, false)
/** Mostly the same role everywhere, so that offers and grants meet. */
const role: fc.Arbitrary<(typeof roleNames)[number]> = fc.oneof(
  { weight: 12, arbitrary: fc.constant('teacher' as const) },
  { weight: 4, arbitrary: fc.constant('guide' as const) },
  { weight: 1, arbitrary: fc.constantFrom('admin' as const, 'inner' as const, 'gone' as const) },
)
const scope: fc.Arbitrary<keyof typeof scopes> = fc.oneof(
  { weight: 5, arbitrary: fc.constant('everywhere' as const) },
  { weight: 2, arbitrary: fc.constantFrom('classroom' as const, 'team' as const) },
)
const until = fc.constantFrom<(keyof typeof times)[]>('never', 'tomorrow', 'far')
const text = fc.constantFrom(null, '', 'hello')
/** Mostly an actor of the account that the move is about. */
const named = fc.option(fc.record({ nth: fc.nat(1), ofAnother: fc.nat(7).map((n) => n === 7) }), { freq: 2 })
export const planted = fc.record({
  actor,
  role,
  scope,
  until,
  lasts: fc.constantFrom('on' as const, 'on' as const, 'on' as const, 'expired' as const, 'closed' as const),
})
export type Planted = typeof planted extends fc.Arbitrary<infer P> ? P : never

const move = {
  offer: fc.record({
    /** The same as in another offer: to the same account, of the same role and scope. */
    like: fc.option(nth, { freq: 3 }),
    to: account,
    named,
    role,
    scope,
    message: text,
    days: fc.constantFrom(null, 1, 365),
    until,
  }),
  accept: fc.record({ nth, isOpen }),
  decline: fc.record({ nth, isOpen, reason: text }),
  retract: fc.record({ nth, isOpen }),
  assign: fc.record({ to: account, named, role, scope, until }),
  revoke: fc.record({ nth, isOpen, reason: text, ofAnother: fc.constantFrom(false, false, false, true) }),
  selfService: fc.record({
    role: fc.constantFrom('guide', 'guide', 'guide', 'teacher', 'gone'),
    enabled: fc.boolean(),
  }),
  destroyScope: fc.record({ scope: fc.constantFrom('classroom' as const, 'team' as const) }),
  deleteAccount: fc.record({ account }),
  undeleteAccount: fc.record({ account }),
  removeActor: fc.record({ actor }),
  sweep: fc.record({}),
  /** Changes outside the calls: a grant is there, a grant expires, an offer lapses. */
  plant: planted,
  expire: fc.record({ nth }),
  lapse: fc.record({ nth }),
}
type Moves = { [K in keyof typeof move]: (typeof move)[K] extends fc.Arbitrary<infer M> ? M : never }
export type Moved<K extends keyof Moves> = Moves[K]
export type Move = { [K in keyof Moves]: { what: K } & Moves[K] }[keyof Moves]
export type What = keyof Moves

const weights: Record<What, number> = {
  offer: 30,
  accept: 7,
  decline: 2,
  retract: 2,
  assign: 3,
  revoke: 4,
  selfService: 2,
  destroyScope: 1,
  deleteAccount: 1,
  undeleteAccount: 2,
  removeActor: 1,
  sweep: 1,
  plant: 3,
  expire: 1,
  lapse: 2,
}
const anyMove: fc.Arbitrary<Move> = fc.oneof(
  ...(Object.keys(move) as What[]).map((what) => ({
    weight: weights[what],
    arbitrary: (move[what] as fc.Arbitrary<object>).map((of) => ({ what, ...of }) as Move),
  })),
)

/** A move by one actor, then a check of what another one sees of one account, one role and one grant. */
export const step = fc.record({
  by: actor,
  /**
   * Whether to pick an actor whose move succeeds, or is refused for a rare reason, if there is one; by chance alone, few
   * moves would succeed and most others be refused alike.
   */
  aim: fc.constantFrom('ok' as const, 'ok' as const, 'ok' as const, 'rare' as const, 'any' as const),
  move: anyMove,
  watcher: actor,
  focus: nth,
})
export type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

export const seed = fc.record({
  admin: fc.option(actor, { freq: 6 }),
  teachers: fc.uniqueArray(actor, { minLength: 2, maxLength: 4 }),
  /** Holds the role in the classroom. */
  local: actor,
  held: fc.array(planted, { maxLength: 5 }),
})
export type Seed = typeof seed extends fc.Arbitrary<infer S> ? S : never

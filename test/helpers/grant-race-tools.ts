import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { sql } from '../../src/db/db.ts'
import { ServiceError } from '../../src/errors.ts'
import type { Notification, NotificationParams } from '../../src/notifications.ts'
import { cloneDatabase, sharedCluster, toUrl } from '../../src/testing/cluster.ts'
import { type TestAccount, type TestService, testService } from '../../src/testing/index.ts'
import { registries } from './offers.ts'

/** Shared parts of the races of role grants and offers. */

/** The outcome of a contender: `ok` and its result, or the reason of its refusal. */
export type Came = { reason: string; answer: Record<string, unknown> }
export type Contender = () => Promise<unknown>

/** The contenders of a race and its allowed outcomes; `judge` returns the outcome, for counting. */
type Staged = {
  contenders: Contender[]
  /** Throws if the outcomes are not allowed, or if the stored state does not follow from them. */
  judge(came: Came[]): Promise<string> | string
}
export type GrantRace = (world: TestService) => Promise<Staged>

export const operator = { via: 'race' }

type GrantRaceWorld = {
  world: TestService
  /** Closes it; resolves to the number of deadlocks that PostgreSQL resolved in all its races. */
  close(): Promise<number>
}

/** A service without limits, so that only the races themselves cause refusals. */
export async function grantRaceWorld(): Promise<GrantRaceWorld> {
  const cluster = await sharedCluster()
  const { connection, drop } = await cloneDatabase(cluster.connection, cluster.template)
  const world = await testService({
    ...registries,
    database_url: toUrl(connection),
    self_service_roles: ['guide'],
    ...Object.fromEntries(
      ['account', 'admin_write', 'role_write', 'role_revoke'].map((name) => [`limit_${name}`, 'off']),
    ),
  })
  const close = async (): Promise<number> => {
    await world.close()
    const deadlocks = await deadlocksMet(connection)
    await drop()
    return deadlocks
  }
  return { world, close }
}

/** A backend reports its statistics when it exits, so all others of the database must be gone. */
async function deadlocksMet(connection: pg.ClientConfig): Promise<number> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    for (;;) {
      const { rows } = await client.query(`
        select deadlocks::int, (select count(*)::int from pg_stat_activity where datname = d.datname) as backends
        from pg_stat_database d where datname = current_database()`)
      if (rows[0].backends === 1) return rows[0].deadlocks
      await delay(5)
    }
  } finally {
    await client.end()
  }
}

export const by =
  ({ service }: TestService, { cookie }: TestAccount, method: string, params: object = {}): Contender =>
  () =>
    service.call(method, params, { headers: { cookie } })

/** Sets up a race in an empty database, runs it, and checks its own rules and the common ones. */
export async function runGrantRace(world: TestService, race: GrantRace): Promise<string> {
  const { db, hub } = world.service.app
  for (const table of ['account', 'role_grant_offer', 'role_scope_destroyed', 'audit_inbox'])
    await db.run(sql`delete from ${sql.raw(table)}`)
  const sent: Notification[] = []
  const deaf = hub.listen(({ notifications }) => sent.push(...notifications))
  try {
    const { contenders, judge } = await race(world)
    const outcome = await judge(await contend(contenders))
    await checkBooks(world, sent)
    return outcome
  } finally {
    deaf()
  }
}

/** Milliseconds over which the starts are spread: none, or enough for each contender to be first sometimes. */
const spreads = [0, 5, 30]

async function contend(contenders: readonly Contender[]): Promise<Came[]> {
  const spread = spreads[Math.floor(Math.random() * spreads.length)] as number
  return await Promise.all(
    contenders.map(async (contender) => {
      if (spread > 0) await delay(Math.random() * spread)
      try {
        return { reason: 'ok', answer: ((await contender()) ?? {}) as Record<string, unknown> }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        return { reason: error.data.reason, answer: {} }
      }
    }),
  )
}

/** Asserts that the outcomes are an allowed combination, such as `ok / role_grant_offer_terminal`. */
export function oneOf(came: readonly Came[], ...allowed: string[]): string {
  const what = came.map(({ reason }) => reason).join(' / ')
  assert.ok(allowed.includes(what), `${what} is no allowed outcome`)
  return what
}

/** Asserts that exactly one succeeded and all others failed with `refusal`. */
export function oneWins(came: readonly Came[], refusal: string): string {
  const what = came.map(({ reason }) => reason)
  assert.equal(what.filter((reason) => reason === 'ok').length, 1, `exactly one succeeds: ${what}`)
  assert.ok(
    what.every((reason) => reason === 'ok' || reason === refusal),
    `${what} is no allowed outcome`,
  )
  return what.join(' / ')
}

export type OfferState = { offer_id: string; state: string; message: string | null; grant_id: string | null }

/** Every stored offer with its state. */
export const offerStates = ({ service }: TestService): Promise<OfferState[]> =>
  service.app.db.rows<OfferState>(sql`
    select offer_id, message, resulting_role_grant_id as grant_id,
      case when accepted_at is not null then 'accepted' when declined_at is not null then 'declined'
        when retracted_at is not null then 'retracted' when superseded_at is not null then 'superseded'
        when expired_at is not null then 'expired' else 'pending' end as state
    from role_grant_offer order by created_at, offer_id`)

export async function stateOf(world: TestService, offer_id: string): Promise<string | undefined> {
  return (await offerStates(world)).find((offer) => offer.offer_id === offer_id)?.state
}

/** Asserts that the offer is accepted if accept succeeded, and otherwise in the state `other`. */
export const acceptedOr = async (
  world: TestService,
  offer_id: string,
  came: { reason: string },
  other: string,
) => assert.equal(await stateOf(world, offer_id), came.reason === 'ok' ? 'accepted' : other)

/** The active grants of one role on an actor. */
export const active = async (
  { service }: TestService,
  actor_id: string,
  role = 'teacher',
): Promise<string[]> =>
  (
    await service.app.db.rows<{ id: string }>(sql`
      select id from role_grant where actor_id = ${actor_id}::uuid and role = ${role}
        and revoked_at is null and closed_at is null and (expires_at is null or expires_at > now())`)
  ).map(({ id }) => id)

/** The terminal state of an offer and its notification. */
const ends: Record<string, { event: string; method?: string }> = {
  accepted: { event: 'role_grant_offer_accept', method: 'role_grant_offer_accepted' },
  declined: { event: 'role_grant_offer_decline', method: 'role_grant_offer_declined' },
  retracted: { event: 'role_grant_offer_retract', method: 'role_grant_offer_retracted' },
  superseded: { event: 'role_grant_offer_supersede', method: 'role_grant_offer_supersede' },
  expired: { event: 'role_grant_offer_expire' },
}

/**
 * The rules after every race: each stored change has exactly one audit row and one notification, there are no
 * others, and no call failed with an unexpected error.
 */
async function checkBooks(world: TestService, sent: readonly Notification[]): Promise<void> {
  const { db } = world.service.app
  const rows = await db.rows<{ event_type: string; outcome: string; metadata: Record<string, unknown> }>(sql`
    select event_type, outcome, metadata from audit_entries()`)
  for (const { outcome, metadata } of rows)
    assert.notDeepEqual([outcome, metadata?.reason], ['failure', 'rolled_back'], 'no call is undone')
  const written = rows.filter(({ outcome }) => outcome === 'success')
  const count = (event: string, key: string, id: string) =>
    written.filter(({ event_type, metadata }) => event_type === event && metadata?.[key] === id).length
  const told = (method: string, id: string) =>
    sent.filter((one) => one.method === method && idOf(one) === id).length

  for (const { offer_id, state } of await offerStates(world)) {
    for (const [end, { event, method }] of Object.entries(ends)) {
      const expected = end === state ? 1 : 0
      assert.equal(count(event, 'offer_id', offer_id), expected, `${event} rows of an offer that is ${state}`)
      if (method)
        assert.equal(told(method, offer_id), expected, `${method} sent of an offer that is ${state}`)
    }
    assert.equal(
      told('role_grant_offer_received', offer_id),
      count('role_grant_offer_create', 'offer_id', offer_id),
      'one received for each create',
    )
  }
  const grants = await db.rows<{ id: string; is_revoked: boolean }>(
    sql`select id, revoked_at is not null as is_revoked from role_grant`,
  )
  for (const { id, is_revoked } of grants) {
    const expected = is_revoked ? 1 : 0
    assert.equal(count('role_grant_revoke', 'role_grant_id', id), expected, 'one row for each revocation')
    assert.equal(told('role_grant_revoke', id), expected, 'one notification for each revocation')
    const made = written.filter(
      ({ event_type, metadata }) =>
        event_type === 'role_grant_create' && metadata.role_grant_id === id && !metadata.extended,
    )
    assert.equal(made.length, 1, 'one row for each grant that was made')
  }
}

const idOf = ({ params }: Notification): string =>
  'offer' in params
    ? params.offer.offer_id
    : (params as NotificationParams<'role_grant_revoke'>).role_grant_id

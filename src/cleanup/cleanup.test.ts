import { Registry } from 'prom-client'
import { beforeEach, describe, expect, it } from 'vitest'
import { auditRows } from '../../test/helpers/audit-rows.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'
import { startCleanup } from './cleanup.ts'

const test = await serviceForFile()
const ada = await test.account()
const bob = await test.account()
const db = () => test.service.app.db
const cleanUp = () => test.service.operations.cleanUp()
const none = {
  expired_offers: 0,
  expired_sessions: 0,
  expired_tokens: 0,
  expired_charges: 0,
  expired_addresses: 0,
  removed_tickets: 0,
  removed_messages: 0,
  resealed_secrets: 0,
  removed_cells: 0,
  removed_audit_rows: 0,
}
beforeEach(async () => {
  await db().run(sql`delete from role_grant_offer`)
})

const sessions = (count: number, age: string) =>
  db().run(sql`
    insert into auth_session (id, account_id, created_at, expires_at)
    select encode(sha256((n || ${age} || random())::bytea), 'hex'), ${ada.id}::uuid, now() - interval '40 days',
      now() - ${age}::interval
    from generate_series(1, ${count}::int) n`)
const token = (name: string, age: string) =>
  db().run(sql`
    insert into api_token (id, account_id, name, token_hash, scope, expires_at)
    values ('tok_' || ${name}, ${ada.id}::uuid, ${name}, ${name}, '{}', now() - ${age}::interval)`)
const offers = async (count: number, age: string, role = 'teacher') =>
  (
    await db().rows<{ offer_id: string }>(sql`
      insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, to_actor_id, role, scope_kind,
        scope_id, expires_at)
      select ${ada.actor_id}::uuid, ${ada.id}::uuid, ${bob.id}::uuid, ${bob.actor_id}::uuid, ${role}, 'room',
        gen_random_uuid(), now() - ${age}::interval
      from generate_series(1, ${count}::int) returning offer_id`)
  ).map(({ offer_id }) => offer_id)

describe('cleanUp', () => {
  it('removes expired sessions, in as many batches as it takes, and no live one', async () => {
    await sessions(2500, '0 seconds')
    await sessions(1, '-1 minute')
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true, expired_sessions: 2500 })
    const left = await db().rows(sql`select 1 from auth_session where account_id = ${ada.id}::uuid`)
    expect(left).toHaveLength(2)
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true })
  })

  it('numbers the audit rows that nobody has read, its own too', async () => {
    await auditRows(test, 3)
    await offers(1, '1 second')
    await cleanUp()
    expect(await db().one(sql`select audit_waiting() as is_waiting`)).toEqual({ is_waiting: false })
  })

  it('removes tokens that expired 30 days ago, and keeps those of 29 days and eternal ones', async () => {
    await token('of-29-days', '29 days 23 hours')
    await token('of-30-days', '30 days')
    await token('of-31-days', '31 days')
    await db().run(sql`
      insert into api_token (id, account_id, name, token_hash, scope)
      values ('tok_eternal', ${ada.id}::uuid, 'eternal', 'eternal', '{}')`)
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true, expired_tokens: 2 })
    const { tokens } = await test.service.operations.listTokens({ account_id: ada.id })
    expect(tokens.map(({ name }) => name).sort()).toEqual(['eternal', 'of-29-days'])
  })

  it('removes limiter charges and slots past their window, in as many batches as it takes', async () => {
    const charges = (total: number, age: string) =>
      db().run(sql`
        insert into limiter_charge (limiter, key, at, slot, expires_at)
        select 'rest login_ip', 'ip:' || n, now() - interval '1 hour', case when n % 2 = 0 then gen_random_uuid() end,
          now() - ${age}::interval
        from generate_series(1, ${total}::int) n`)
    await charges(2500, '0 seconds')
    await charges(3, '-1 minute')
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true, expired_charges: 2500 })
    expect(await db().rows(sql`delete from limiter_charge returning 1`)).toHaveLength(3)
  })

  it('removes charges from before the clock of the database was set back', async () => {
    await db().run(sql`
      insert into limiter_charge (limiter, key, at, expires_at)
      select 'rest login_ip', age, now() + age::interval, now() + age::interval + interval '15 minutes'
      from unnest('{2 days,2 minutes,30 seconds}'::text[]) age`)
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true, expired_charges: 2 })
    expect(await db().rows(sql`delete from limiter_charge returning key`)).toEqual([{ key: '30 seconds' }])
  })

  it('stamps each lapsed offer once, with one row from the grantor to the recipient', async () => {
    const [first = ''] = await offers(1, '0 seconds')
    await offers(1, '-1 minute')
    const scope_id = await db().first<{ scope_id: string }>(sql`
      select scope_id from role_grant_offer where offer_id = ${first}::uuid`)
    const result = await scenario(test, cleanUp, {
      audit: [
        {
          event_type: 'role_grant_offer_expire',
          actor_id: ada.actor_id,
          account_id: ada.id,
          target_account_id: bob.id,
          target_actor_id: bob.actor_id,
          ip: null,
          metadata: { offer_id: first, role: 'teacher', scope_kind: 'room', ...scope_id },
        },
      ],
    })
    expect(result).toEqual({ ...none, ran: true, expired_offers: 1 })
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true })
    const stamped = await db().rows<{ offer_id: string }>(sql`
      select offer_id from role_grant_offer where expired_at is not null`)
    expect(stamped).toEqual([{ offer_id: first }])
  })

  it('leaves offers that were answered, whenever they would have lapsed', async () => {
    const [id = ''] = await offers(1, '1 day')
    await db().run(sql`update role_grant_offer set declined_at = now() where offer_id = ${id}::uuid`)
    expect(await scenario(test, cleanUp)).toEqual({ ...none, ran: true })
  })

  it('leaves an offer that somebody holds to the next run, without waiting', async () => {
    const ids = await offers(3, '1 hour')
    const other = await rival(test.databaseUrl)
    await other.begin('select from role_grant_offer where offer_id = $1 for update', [ids[0]])
    expect(await cleanUp()).toMatchObject({ expired_offers: 2 })
    await other.commit()
    await other.close()
    expect(await cleanUp()).toMatchObject({ expired_offers: 1 })
  })

  it('stamps nothing whose row cannot be written, and removes sessions all the same', async () => {
    await offers(2, '1 hour')
    await sessions(1, '1 second')
    await db().run(
      sql`alter table audit_inbox add constraint no_expiry check (event_type <> 'role_grant_offer_expire') not valid`,
    )
    try {
      await expect(cleanUp()).rejects.toThrow('no_expiry')
    } finally {
      await db().run(sql`alter table audit_inbox drop constraint no_expiry`)
    }
    expect(await cleanUp()).toEqual({ ...none, ran: true, expired_offers: 2 })
  })

  it('runs once at a time, on every node: a second call does nothing and says so', async () => {
    const node = await testService({ database_url: test.databaseUrl })
    const ids = await offers(1, '1 hour')
    const other = await rival(test.databaseUrl)
    // Stops the first cleanup halfway.
    await other.begin('lock table api_token in access exclusive mode')
    const first = cleanUp()
    await other.blocks(1)
    for (const second of [cleanUp, node.service.operations.cleanUp])
      expect(await second()).toEqual({ ...none, ran: false })
    await other.commit()
    expect(await first).toMatchObject({ ran: true, expired_offers: ids.length })
    expect(await node.service.operations.cleanUp()).toMatchObject({ ran: true })
    await other.close()
    await node.close()
  })

  it('keeps the batches that were done when it is stopped, and the next run does the rest', async () => {
    await sessions(2100, '1 second')
    const other = await rival(test.databaseUrl)
    const stop = new AbortController()
    await other.begin('lock table auth_session in access exclusive mode')
    const run = test.service.operations.cleanUp({ signal: stop.signal })
    await other.blocks(1)
    stop.abort()
    await other.commit()
    await other.close()
    expect(await run).toEqual({ ...none, ran: true, expired_sessions: 1000 })
    expect(await cleanUp()).toMatchObject({ expired_sessions: 1100 })
  })

  it('stops after its batch when the connection of its turn ends, and another node does the rest', async () => {
    await sessions(2100, '1 second')
    const node = await testService({ database_url: test.databaseUrl })
    const other = await rival(test.databaseUrl)
    const turns = sql`from pg_stat_activity where application_name = 'cellkeep cleanup' and datname = current_database()`
    await other.begin('lock table auth_session in access exclusive mode')
    const run = cleanUp().catch((error) => error.data.reason)
    await other.blocks(1)
    await db().run(sql`select pg_terminate_backend(pid) ${turns}`)
    await expect.poll(() => db().rows(sql`select ${turns}`)).toEqual([])
    await other.commit()
    expect(await run).toBe('service_unavailable')
    expect(await node.service.operations.cleanUp()).toEqual({ ...none, ran: true, expired_sessions: 1100 })
    await other.close()
    await node.close()
  })

  it('gives the turn back when it dies', async () => {
    await sessions(1, '1 second')
    const other = await rival(test.databaseUrl)
    await other.begin('lock table auth_session in access exclusive mode')
    const run = cleanUp().catch((error) => error.data.reason)
    await other.blocks(1)
    await other.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name = 'cellkeep'`)
    expect(await run).toBe('service_unavailable')
    await other.commit()
    await other.close()
    expect(await cleanUp()).toMatchObject({ ran: true, expired_sessions: 1 })
  })
})

describe('the timer', () => {
  it('is off in the library and runs every so many seconds where it is set', async () => {
    const lines: unknown[] = []
    const log = { debug() {}, info: (fields: unknown) => void lines.push(fields), warn() {}, error() {} }
    const { config } = test.service.app
    expect(config.cleanup_interval_s).toBeNull()
    await sessions(3, '1 second')
    const node = await testService({ database_url: test.databaseUrl, log, cleanup_interval_s: 10 })
    // The minimum setting is ten seconds; the test shortens it.
    const app = { ...node.service.app, config: { ...config, cleanup_interval_s: 0.02 } }
    const stop = startCleanup(app)
    await expect.poll(() => lines).toContainEqual({ ...none, expired_sessions: 3 })
    await sessions(2, '1 second')
    await expect.poll(() => lines).toContainEqual({ ...none, expired_sessions: 2 })
    await stop()
    await sessions(1, '1 second')
    expect(await cleanUp()).toMatchObject({ ran: true, expired_sessions: 1 })
    await node.close()
  })

  it('leaves the work to a newer node, and counts each run that it skips, so that no alert misses one', async () => {
    await sessions(1, '1 second')
    const metrics = new Registry()
    await using node = await testService({ database_url: test.databaseUrl, metrics })
    const { config, node: own } = node.service.app
    const stop = startCleanup({
      ...node.service.app,
      config: { ...config, cleanup_interval_s: 0.02 },
      node: { ...own, isBehind: true },
    })
    const skipped = /^cellkeep_job_runs_total\{job="cleanup",outcome="skipped"\} [1-9]/m
    await expect.poll(() => metrics.metrics()).toMatch(skipped)
    await stop()
    expect(await cleanUp()).toMatchObject({ ran: true, expired_sessions: 1 })
  })

  it('logs a failure and goes on', async () => {
    const lines: string[] = []
    const log = { ...test.service.app.log, error: (_fields: unknown, text: string) => void lines.push(text) }
    let fails = true
    const app = {
      ...test.service.app,
      log: log as typeof test.service.app.log,
      config: { ...test.service.app.config, cleanup_interval_s: 0.02 },
      db: {
        ...db(),
        exclusively: (async (name: string, work: () => Promise<unknown>) => {
          if (fails) throw new Error('no luck')
          return await db().exclusively(name, work)
        }) as ReturnType<typeof db>['exclusively'],
      },
    }
    await sessions(1, '1 second')
    const stop = startCleanup(app)
    await expect.poll(() => lines.length).toBeGreaterThan(0)
    fails = false
    const left = () => db().rows(sql`select 1 from auth_session where expires_at <= now()`)
    await expect.poll(async () => (await left()).length).toBe(0)
    await stop()
  })
})

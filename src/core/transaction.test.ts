import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { ownLocks } from '../../test/helpers/own-locks.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'
import type { Work } from './mutate.ts'
import type { TransactionOptions } from './transaction.ts'

const team = z.strictObject({ team_id: z.guid() })
const team_id = '00000000-0000-4000-8000-000000000002'
// Typed loosely, as in a consumer that has not declared its events in TypeScript.
const options = { event: 'team_remove', via: 'nightly_job' } as unknown as TransactionOptions
const record = ({ audit }: Work) => audit('team_remove' as never, { team_id } as never)

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({
    audit_events: { team_remove: team },
    roles: [{ name: 'teacher', grant_paths: ['system'] }],
  })
  ada = await test.account()
  await test.service.app.db.run(sql`create table team (id uuid)`)
})
afterAll(() => test.close())

const insertTeam = ({ db }: Work) => db.run(sql`insert into team values (${team_id}::uuid)`)
const teams = async () => (await test.service.app.db.rows(sql`select from team`)).length
const grant = (within: Work) =>
  test.service.operations.grantRole(
    { actor_id: ada.actor_id, role: 'teacher', path: 'system' },
    { via: 'nightly_job', within },
  )

describe('a transaction of the consumer', () => {
  it('keeps its writes, its rows and what operator calls did within it, and answers', async () => {
    const effects: string[] = []
    const work = async (tools: Work) => {
      await insertTeam(tools)
      record(tools)
      const { role_grant_id } = await grant(tools)
      tools.afterCommit(() => void effects.push('done'))
      expect(effects).toEqual([])
      return role_grant_id
    }
    const envelope = { actor_id: null, account_id: null, ip: null }
    const id = await scenario(test, () => test.service.transaction(options, work), {
      audit: [
        { event_type: 'team_remove', ...envelope, metadata: { team_id } },
        { event_type: 'role_grant_create', ...envelope, target_actor_id: ada.actor_id },
      ],
    })
    const held = await test.service.app.db.rows(sql`select id from role_grant where role = 'teacher'`)
    expect([held, await teams(), effects]).toEqual([[{ id }], 1, ['done']])
  })

  it('names the account and actor it acts for, if given', async () => {
    const caller = { actor_id: ada.actor_id, account_id: ada.id, ip: '192.0.2.1' }
    await scenario(
      test,
      () => test.service.transaction({ ...options, ...caller }, async (it) => record(it)),
      {
        audit: [{ event_type: 'team_remove', ...caller }],
      },
    )
  })

  it('that throws is undone with all that joined it, rejects with what was thrown, and leaves one row', async () => {
    const before = await teams()
    const thrown = new Error('no')
    let answer: unknown
    const fails = async (tools: Work) => {
      await insertTeam(tools)
      await grant(tools)
      tools.notify(ada.id, 'role_grant_revoke', { role_grant_id: team_id, role: 'teacher', scope_id: null })
      throw thrown
    }
    const run = async () => {
      answer = await test.service.transaction(options, fails).catch((error) => error)
    }
    await scenario(test, run, {
      audit: [
        {
          event_type: 'team_remove',
          outcome: 'failure',
          metadata: { reason: 'rolled_back', via: 'nightly_job' },
        },
      ],
    })
    expect([answer, await teams()]).toEqual([thrown, before])
  })

  it('sees one snapshot of the database if it asks for that', async () => {
    const counted = (snapshot: boolean) =>
      test.service.transaction({ ...options, snapshot }, async (tools) => {
        const count = async () => (await tools.db.rows(sql`select from team`)).length
        const first = await count()
        await test.service.app.db.run(sql`insert into team values (null)`)
        return (await count()) - first
      })
    expect([await counted(false), await counted(true)]).toEqual([1, 0])
  })

  it.each([
    [8, 'ok', 9],
    [9, 'service_unavailable', 9],
  ])('of a snapshot that %i commits of others conflict with: %s', async (conflicts, outcome, expected) => {
    const { db } = test.service.app
    await db.run(sql`create table if not exists tally (n int)`)
    await db.run(sql`with gone as (delete from tally) insert into tally values (0)`)
    let runs = 0
    const done = test.service.transaction({ ...options, snapshot: true }, async (tools) => {
      await tools.db.rows(sql`select from tally`)
      if (runs++ < conflicts) await db.run(sql`update tally set n = n + 1`)
      await tools.db.run(sql`update tally set n = n + 100`)
    })
    expect(await reasonOf(done)).toBe(outcome)
    const tally = await db.rows<{ n: number }>(sql`select n from tally`)
    expect([runs, tally]).toEqual([expected, [{ n: conflicts + (outcome === 'ok' ? 100 : 0) }]])
  })

  it.each(['ok', 'error'])('of a snapshot that others conflicted with keeps no lock: %s', async (ending) => {
    const { db } = test.service.app
    await db.run(sql`create table if not exists tally (n int)`)
    await db.run(sql`insert into tally values (0)`)
    const turns = () =>
      db.rows(sql`select from ${sql.raw(ownLocks)} locks where locktype = 'advisory' and objsubid = 1`)
    let runs = 0
    const own = { ...options, account_id: ada.id, snapshot: true }
    const done = test.service.transaction(own, async (tools) => {
      await tools.db.rows(sql`select from tally`)
      if (runs++ === 0) await db.run(sql`update tally set n = n + 1`)
      else expect(await turns()).toHaveLength(1)
      await tools.db.run(sql`update tally set n = n + 100`)
      if (ending === 'error') throw new Error('late')
    })
    if (ending === 'error') await expect(done).rejects.toThrow('late')
    else await done
    expect(runs).toBe(2)
    await expect.poll(turns).toEqual([])
  })

  it('is not begun inside another, and says how to join it', async () => {
    const nested = test.service.transaction(options, () => test.service.transaction(options, async () => {}))
    await expect(nested).rejects.toThrow(/already open.*`within`/)
  })

  it('joins the one it is given: one commit, one rollback, and rows that name its own caller', async () => {
    const inner = (within: Work, error?: Error) =>
      test.service.transaction({ ...options, account_id: ada.id, within }, async (tools) => {
        await insertTeam(tools)
        record(tools)
        if (error) throw error
      })
    const before = await teams()
    const outer = (error?: Error) =>
      test.service.transaction(options, async (tools) => {
        await insertTeam(tools)
        await inner(tools, error)
        expect(await teams()).toBe(before)
      })
    const row = { event_type: 'team_remove', account_id: ada.id }
    await scenario(test, () => outer(), { audit: [row] })
    expect(await teams()).toBe(before + 2)
    const refused = scenario(test, () => outer(refusal('insufficient_permissions')), {
      reason: 'insufficient_permissions',
      audit: [{ ...row, outcome: 'failure' }],
    })
    await refused
    expect(await teams()).toBe(before + 2)
  })

  it('cannot ask the one it joins for a snapshot', async () => {
    const joining = test.service.transaction(options, (within) =>
      test.service.transaction({ ...options, within, snapshot: true }, async () => {}),
    )
    await expect(joining).rejects.toThrow(/give the first one `snapshot`/)
  })

  it('records the ids that it may name, also in upper case', async () => {
    const { id, actor_id } = ada
    const named = { ...options, actor_id: actor_id.toUpperCase(), account_id: id.toUpperCase() }
    await scenario(test, () => test.service.transaction(named, async (work) => record(work)), {
      audit: [{ event_type: 'team_remove', actor_id, account_id: id, metadata: { team_id } }],
    })
  })

  it('keeps a row that names an id in no form of a UUID, without that id', async () => {
    const target_account_id = ada.id
    await scenario(
      test,
      () =>
        test.service.transaction(options, async ({ audit }) => {
          const subject = { target_actor_id: 'ada', target_account_id, cell_ids: ['x', team_id] }
          audit('team_remove' as never, { team_id } as never, subject)
        }),
      {
        audit: [
          { event_type: 'team_remove', target_actor_id: null, target_account_id, metadata: { team_id } },
        ],
      },
    )
    expect(test.service.app.audit).toMatchObject({ lost: 0, flaws: 1 })
  })

  it.each([
    ['an event that is not registered', { ...options, event: 'login2' }, 'login2'],
    ['an event named like a property', { ...options, event: 'constructor' }, 'constructor'],
    ['a via that is free text', { ...options, via: 'A job' }, 'via'],
    ['an actor that is no UUID', { ...options, actor_id: 'ada' }, '`actor_id` must be a UUID'],
    ['an account that is no UUID', { ...options, account_id: 7 }, '`account_id` must be a UUID'],
  ])('is refused for %s, and nothing runs', async (_what, wrong, names) => {
    let runs = 0
    const run = test.service.transaction(wrong as TransactionOptions, async () => {
      runs += 1
    })
    await expect(run).rejects.toThrow(names)
    expect(runs).toBe(0)
  })
})

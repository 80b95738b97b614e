import { afterAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { reasonOf } from '../../test/helpers/http.ts'
import { failureRow, mutationLab, successRow, write } from '../../test/helpers/mutation-lab.ts'
import { briefly, sql } from '../db/db.ts'
import type { SharedStatement } from './single.ts'

/** Mutations that share one statement with concurrent ones. */

const lab = await mutationLab()
afterAll(() => lab.close())
beforeEach(() => lab.reset())
await lab.admin.query(`
  create function at_commit_waits() returns trigger language plpgsql as $$
  begin
    if new.text = 'wait' then perform pg_advisory_xact_lock(1); end if;
    return null;
  end $$;
  create constraint trigger at_commit_waits after insert on note deferrable initially deferred
    for each row execute function at_commit_waits();`)

const max = 4
/** Does not insert the notes named `alone`. */
const notes: SharedStatement<string> = {
  max,
  statement: (texts) => sql`asked as (
    select asked.* from unnest(${texts}::text[]) with ordinality as asked (text, nth), ${briefly}
  ), noted as (
    insert into note (text) select text from asked where text <> 'alone' returning text
  ), stored as (select nth, text from noted join asked using (text))`,
}

/** Makes one call per text, all writing at the same moment; resolves to what each answered, or its reason, or `ok`. */
function atOnce(...texts: string[]) {
  const all = Promise.withResolvers<void>()
  let arrived = 0
  lab.work = async ({ single }, text) => {
    arrived += 1
    if (arrived === texts.length) all.resolve()
    await all.promise
    const statement = sql`noted as (${write(text)} returning text)`
    const row = await single(statement, 'noted', () => {}, { write: notes, key: text })
    expect(row).toEqual({ text })
  }
  return texts.map(async (text) => {
    const reply = await lab.reply(text)
    const { data } = (reply.json as { error?: { data: { outcome?: string } } }).error ?? {}
    return data?.outcome ?? reasonOf(reply)
  })
}

/** The answers, the notes, the audit rows, and the effects that ran. */
const outcomes = async (...texts: string[]) => ({
  answers: await Promise.all(atOnce(...texts)),
  notes: (await lab.notes()).sort(),
  audit: await lab.audited(),
  effects: lab.effects.length,
})

/** The number of transactions that wrote the notes. */
const transactions = async () =>
  Number((await lab.admin.query('select count(distinct xmin::text) as count from note')).rows[0].count)

const ok = (...texts: string[]) => ({
  answers: texts.map(() => 'ok'),
  notes: [...texts].sort(),
  audit: texts.map(() => successRow),
  effects: texts.length,
})

it('calls at one moment share a statement and its commit, up to its max, and each has its own row', async () => {
  expect(await outcomes('a', 'b', 'c')).toEqual(ok('a', 'b', 'c'))
  expect(await transactions()).toBe(1)
  await lab.reset()
  expect(await outcomes('a', 'b', 'c', 'd', 'e', 'f')).toEqual(ok('a', 'b', 'c', 'd', 'e', 'f'))
  expect(await transactions()).toBe(2)
})

it('a call that the statement leaves out goes alone', async () => {
  expect(await outcomes('a', 'alone', 'b')).toEqual(ok('a', 'alone', 'b'))
  expect(await transactions()).toBe(2)
  await lab.reset()
  expect(await outcomes('alone')).toEqual(ok('alone'))
})

it.each([
  ['refuse', 'internal_error'],
  ['conflict', 'none'],
])('one that fails at its commit, by %s, fails alone', async (text, answer) => {
  expect(await outcomes('a', text, 'b')).toEqual({
    answers: ['ok', answer, 'ok'],
    notes: ['a', 'b'],
    audit: expect.arrayContaining([successRow, successRow, failureRow]),
    effects: 2,
  })
})

it('one that waits for a lock waits alone', async () => {
  await lab.admin.query('select pg_advisory_lock(1)')
  const [a, wait, b] = atOnce('a', 'wait', 'b')
  expect([await a, await b]).toEqual(['ok', 'ok'])
  expect((await lab.notes()).sort()).toEqual(['a', 'b'])
  await lab.admin.query('select pg_advisory_unlock(1)')
  expect(await wait).toBe('ok')
  expect(await lab.audited()).toEqual([successRow, successRow, successRow])
})

it('a lost connection leaves the outcome of all unknown, and no failure rows', async () => {
  expect(await outcomes('a', 'die')).toEqual({
    answers: ['unknown', 'unknown'],
    notes: [],
    audit: [],
    effects: 0,
  })
})

it('what was stored is answered as such, even if no connection is available by then', async () => {
  const [stored, full, over] = [1, 2, 3].map(() => Promise.withResolvers<void>())
  lab.work = async ({ single }, text) => {
    const statement = sql`noted as (${write(text)} returning text)`
    await single(statement, 'noted', () => {}, { write: notes, key: text })
    stored?.resolve()
    await full?.promise
  }
  const reply = lab.reply('a')
  await stored?.promise
  const { db, config } = lab.test.service.app
  const others = Array.from({ length: config.database_pool_max }, () =>
    db.transaction(async (tx) => {
      await tx.run(sql`select`)
      await over?.promise
    }),
  )
  await expect.poll(() => db.load()).toMatchObject({ open: config.database_pool_max, idle: 0 })
  full?.resolve()
  expect(reasonOf(await reply)).toBe('ok')
  over?.resolve()
  await Promise.all(others)
  expect([await lab.notes(), lab.effects]).toEqual([['a'], ['effect']])
})

it('one that is under way 30 s after its mutation began is answered as it ends', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const late = lab.outcome(async ({ single }) => {
    const statement = sql`noted as (${write('late')} returning text)`
    const stored = single(statement, 'noted', () => {}, { write: notes, key: 'late' })
    vi.advanceTimersByTime(30_000)
    await stored
  })
  expect(await late).toMatchObject({ status: 200, notes: ['late'], audit: [successRow] })
})

it('a log that cannot be written does not keep them from being stored', async () => {
  await lab.admin.query('alter function audit_write(json) rename to audit_write_gone')
  try {
    expect(await outcomes('a', 'b')).toEqual({ ...ok('a', 'b'), audit: [] })
  } finally {
    await lab.admin.query('alter function audit_write_gone(json) rename to audit_write')
  }
  expect(await outcomes('c')).toMatchObject({ answers: ['ok'], audit: [successRow] })
})

it('a row that the log refuses is the only one missing', async () => {
  await lab.admin.query(`alter table audit_inbox add constraint few check (written % 3 <> 0) not valid`)
  try {
    const done = await outcomes('a', 'b', 'c')
    expect(done).toEqual({ ...ok('a', 'b', 'c'), audit: [successRow, successRow] })
  } finally {
    await lab.admin.query('alter table audit_inbox drop constraint few')
  }
  expect(
    lab.captured
      .lines()
      .filter(({ event }) => event === 'audit_rows_lost')
      .at(-1),
  ).toMatchObject({
    rows: 1,
  })
})

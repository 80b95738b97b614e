import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { type TestAccount, type TestService, testService } from '../src/testing/index.ts'
import { busy, fillAuditLog, quiet, quietType } from './audit-world.ts'
import { machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import { Started } from './processes.ts'
import { deepCursor } from './scale-cases.ts'
import { explain, writePlans } from './scale-plan.ts'
import { byTurns, type Call, type Compared } from './turns.ts'

/**
 * `npm run bench:audit`: the audit lists over a small and a large log, in two databases of one cluster, through
 * the real service in process. Calls alternate between small and large; the max ratio of medians is 1.5. fsync is
 * off and everything is in memory, so this measures work, not the disk.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    base: { type: 'string', default: '10000' },
    /** Of the large log and of the small one. */
    partitions: { type: 'string', default: '1' },
    'base-partitions': { type: 'string', default: '1' },
    rounds: { type: 'string', default: '200' },
    /** Only cases whose name contains this text. */
    only: { type: 'string', default: '' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const bar = 1.5

type World = { test: TestService; client: pg.Client; admin: TestAccount; rows: number }
type Case = {
  name: string
  method?: 'audit_log_list' | 'audit_log_role_grant_history'
  params(rows: number): Record<string, unknown>
  /** Page 200 of ten rows; otherwise the first page of fifty. */
  isDeep?: true
}

const cases: Case[] = [
  { name: 'newest', params: () => ({}) },
  { name: 'page 200', params: () => ({}), isDeep: true },
  { name: 'since_seq, in the middle', params: (rows) => ({ since_seq: Math.floor(rows / 2) }) },
  { name: 'offset 9000', params: () => ({ offset: 9000 }) },
  { name: 'account, busy', params: () => ({ account_id: busy }) },
  { name: 'account, busy, page 200', params: () => ({ account_id: busy }), isDeep: true },
  { name: 'account, quiet', params: () => ({ account_id: quiet }) },
  { name: 'account, unknown', params: () => ({ account_id: '00000000-0000-4000-8000-0000000fffff' }) },
  { name: 'account, busy, and type', params: () => ({ account_id: busy, event_type: 'login' }) },
  { name: 'type, common', params: () => ({ event_type: 'login' }) },
  { name: 'type, common, page 200', params: () => ({ event_type: 'login' }), isDeep: true },
  { name: 'type, rare and old', params: () => ({ event_type: quietType }) },
  { name: 'type, unknown', params: () => ({ event_type: 'nothing' }) },
  { name: 'refusals', params: () => ({ outcome: 'failure' }) },
  { name: 'refusals of a type', params: () => ({ outcome: 'failure', event_type: 'login' }) },
  { name: 'role grant history', method: 'audit_log_role_grant_history', params: () => ({}) },
]

type Result = Compared & { name: string; plan: string }

const started = new Started()
try {
  const small = await makeWorld(Number(flags.base), Number(flags['base-partitions']))
  const large = await makeWorld(Number(flags.rows), Number(flags.partitions))
  const facts = await machine(large.client)
  const results: Result[] = []
  for (const one of cases.filter(({ name }) => name.includes(flags.only)))
    results.push(await compare(one, small, large))
  const text = report(results, machineLine(facts))
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'audit.md'), text)
    await writePlans(flags.out, 'audit', results)
  }
  process.exitCode = results.every(({ ratio }) => ratio <= bar) ? 0 : 1
} finally {
  await started.close()
}

async function makeWorld(rows: number, partitions: number): Promise<World> {
  const begun = performance.now()
  const test = await testService({ limit_admin_read: 'off' })
  started.add(test.close)
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  started.add(() => client.end())
  const admin = await test.account({ roles: ['admin'] })
  await client.query('delete from audit_inbox')
  await fillAuditLog(client, rows, partitions)
  console.log(
    `A log of ${rows} rows in ${partitions} partitions, made in ${((performance.now() - begun) / 1000).toFixed(0)} s`,
  )
  return { test, client, admin, rows }
}

async function compare(one: Case, small: World, large: World): Promise<Result> {
  const calls = [await prepare(one, small), await prepare(one, large)] as const
  const compared = await byTurns(...calls, { rounds: Number(flags.rounds) })
  return { name: one.name, ...compared, plan: await explain(large.client, calls[1]) }
}

/** A function that makes the call of the case in a world. */
async function prepare(one: Case, { test, admin, rows }: World): Promise<Call> {
  const { method = 'audit_log_list' } = one
  const call = (params: object) => test.service.call(method, params, { headers: { cookie: admin.cookie } })
  const params = one.params(rows)
  if (one.isDeep) {
    const cursor = await deepCursor(call, params)
    if (cursor === undefined) throw new Error(`${one.name}: the log of ${rows} rows has no such page`)
    Object.assign(params, { cursor, limit: 10 })
  }
  return async () => ((await call(params)) as { events: unknown[] }).events.length
}

function of(rows: string, partitions: string): string {
  return `${rows} rows${partitions === '1' ? '' : ` in ${partitions} partitions`}`
}

function report(results: readonly Result[], foot: string): string {
  const over = results.filter(({ ratio }) => ratio > bar)
  return `${[
    `# The audit lists over ${of(flags.rows, flags.partitions)} against ${of(flags.base, flags['base-partitions'])}`,
    `Written by \`npm run bench:audit\`: medians over the large log ÷ medians over the small one, the bar is ${bar}.
First page of 50 rows unless said, page 200 of 10 rows. In process, fsync off, data in memory.`,
    table(
      ['Case', 'ratio', 'small ms', 'large ms', 'large p99 ms', 'rows'],
      results.map(({ name, small, large, ratio }) => [
        name,
        short(ratio),
        short(small.median),
        short(large.median),
        short(large.p99),
        `${small.rows} / ${large.rows}`,
      ]),
    ),
    `Over the bar: ${over.map(({ name }) => name).join('; ') || 'none'}.`,
    foot,
  ].join('\n\n')}\n`
}

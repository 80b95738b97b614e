import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Registry } from 'prom-client'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { openStream } from '../../../test/helpers/audit-streams.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { postgresProxy } from '../../../test/helpers/postgres-proxy.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { stoppableCluster } from '../../../test/helpers/stoppable-cluster.ts'
import { on } from '../../../test/helpers/twins.ts'
import { restoreBackup } from '../../backup/restore.ts'
import type { Environment } from '../../config/reading.ts'
import { query } from '../../core/declare.ts'
import { silentLog } from '../../log/log.ts'
import { toUrl } from '../../testing/cluster.ts'
import { testService } from '../../testing/index.ts'
import { sql } from '../db.ts'

const [primary, standby, foreign] = await Promise.all([
  stoppableCluster({ wal_level: 'replica' }),
  stoppableCluster(),
  stoppableCluster({ wal_level: 'replica' }, { from: null }),
])
afterAll(() => Promise.all([primary, standby, foreign].map(({ remove }) => remove())))
await Promise.all([primary.stop(), standby.stop()])
await standby.replaceBy(primary)
await standby.follow(primary)
await primary.start()
await standby.start()

/** For more: `REPLICA_ROUNDS=10000 npx vitest run src/db/servers/replicas.test.ts --test-timeout 3600000`. */
const rounds = Number(process.env.REPLICA_ROUNDS ?? 30)
const registry = new Registry()
/** The log of the reader. */
const lines: unknown[] = []
/** A consumer's method. */
const where = query({
  doc: 'Tells who answers.',
  auth: { account: 'none', actor: 'none' },
  replica: true,
  output: z.object({ is_standby: z.boolean() }),
  handler: (_input, { db }) => db.one<{ is_standby: boolean }>(sql`select pg_is_in_recovery() as is_standby`),
})
const statements: string[] = []
/** The node that writes; it has no replica. */
const writer = await serviceForFile({
  database_url: primary.url,
  limit_cell_create: 'off',
  limit_cell_write: 'off',
  onStatement: (text) => statements.push(text),
})
const reader = await serviceForFile({
  database_url: primary.url,
  database_replica_urls: [standby.url],
  limit_cell_read: 'off',
  audit_stream: true,
  actions: { where },
  metrics: registry,
  log: { ...silentLog, info: (line: unknown) => lines.push(line) },
})
const replica = reader.service.app.db.replicas?.all[0]
const inUse = (isUsed: boolean) => expect.poll(() => replica?.isFit, { interval: 10 }).toBe(isUsed)
const back = () => inUse(true)

type Counts = Record<'served' | 'behind' | 'failed', number>
async function counts(): Promise<Counts> {
  const found: Counts = { served: 0, behind: 0, failed: 0 }
  const { values } = (await registry.getSingleMetric('cellkeep_replica_reads_total')?.get()) ?? { values: [] }
  for (const { labels, value } of values) found[labels.outcome as keyof Counts] = value
  return found
}
/** How much `work` adds to the counts. */
async function counted(work: () => Promise<unknown>): Promise<Counts> {
  const before = await counts()
  await work()
  const after = await counts()
  return {
    served: after.served - before.served,
    behind: after.behind - before.behind,
    failed: after.failed - before.failed,
  }
}
async function statementsOn(target: string): Promise<Record<string, number>> {
  const { values } = (await registry.getSingleMetric('cellkeep_db_statement_seconds')?.get()) ?? {
    values: [],
  }
  const of = (values as { metricName?: string; labels: Record<string, string>; value: number }[]).filter(
    ({ metricName, labels }) => metricName?.endsWith('_count') && labels.target === target,
  )
  return Object.fromEntries(of.map(({ labels, value }) => [labels.statement as string, value]))
}
/** A connection to the standby itself. */
const follower = new pg.Client(standby.url)
follower.on('error', () => {})
await follower.connect()
afterAll(() => follower.end().catch(() => {}))
const replay = (word: 'pause' | 'resume') => follower.query(`select pg_wal_replay_${word}()`)

const ada = await writer.account({ roles: ['admin'] })
const bob = await writer.account()
const [adaReads, bobReads, anyone] = [reader.client(ada.cookie), reader.client(bob.cookie), reader.client()]
const { cell } = await ada.client.cell_create({ kind: 'note', visibility: 'public', data: { round: 0 } })
const { id } = cell

/** Repeats a read until the replica answers it at the first attempt, and the primary was asked for nothing else. */
async function isServed(read: () => Promise<unknown>, onPrimary: string[] = []): Promise<void> {
  const attempt = async () => {
    const before = await statementsOn('primary')
    const found = await counted(read)
    const after = await statementsOn('primary')
    const asked = Object.keys(after).filter((name) => after[name] !== before[name])
    // A probe reads a fence, too.
    return { ...found, onPrimary: asked.filter((name) => name !== 'fence').sort() }
  }
  await expect.poll(attempt, { interval: 1 }).toEqual({ served: 1, behind: 0, failed: 0, onPrimary })
}

it('every read that a replica may answer goes to it, with the credential and the fence from the primary', async () => {
  await back()
  await ada.client.cell_field_set({ source_id: id, name: 'self', target_id: id })
  await ada.client.cell_item_insert({ parent_id: id, child_id: id, position: 'n' })
  const methods = {
    cell_get: async () => (await adaReads.cell_get({ id })).fields,
    cell_list: async () => (await adaReads.cell_list({})).cells,
    cell_field_list: async () => (await adaReads.cell_field_list({ source_id: id })).fields,
    cell_item_list: async () => (await adaReads.cell_item_list({ parent_id: id })).items,
    actor_lookup: async () => (await adaReads.actor_lookup({ ids: [bob.actor_id] })).actors,
    actor_search: async () => (await adaReads.actor_search({ query: bob.username })).actors,
  }
  for (const read of Object.values(methods))
    await isServed(async () => expect(await read()).toHaveLength(1), ['caller'])
  await isServed(async () => expect((await anyone.cell_get({ id })).items).toHaveLength(1))
  // Rows are numbered on the primary.
  const logs = {
    audit_log_list: async () => (await adaReads.audit_log_list({ event_type: 'cell_create' })).events,
    audit_log_role_grant_history: async () => (await adaReads.audit_log_role_grant_history({})).events,
    cell_audit_list: async () => (await adaReads.cell_audit_list({ cell_id: id })).events.slice(2),
  }
  for (const [name, read] of Object.entries(logs))
    await isServed(async () => expect(await read()).toHaveLength(1), [name, 'caller'].sort())
  await isServed(async () => {
    for await (const { seq } of await reader.service.operations.exportAudit({}))
      expect(seq).toBeGreaterThan(0)
  }, ['other'])
  await isServed(async () =>
    expect(await reader.service.call('where' as string)).toEqual({ is_standby: true }),
  )
  const caughtUp = async () => {
    const stream = await openStream(reader, { cookie: ada.cookie }, `?acting=${ada.actor_id}&after=0`)
    expect(await stream.take(3)).toHaveLength(3)
    stream.leave()
  }
  await expect.poll(async () => (await counted(caughtUp)).served).toBe(1)
  await isServed(methods.cell_list, ['caller'])
  await expect.poll(() => lines.at(-1)).toMatchObject({ rpc_method: 'cell_list', target: 'replica' })
})

it('a read sees what another node has written before, however replay is held up', async () => {
  for (let round = 1; round <= rounds; round++) {
    await back()
    // Replay is paused until after the reads, or for a part of their time.
    const isHeld = round % 5 === 0
    await replay('pause')
    const resumed = isHeld ? undefined : delay(20 * Math.random()).then(() => replay('resume'))
    await ada.client.cell_update({ cell_id: id, data: { round } })
    const found = await counted(async () => {
      const [read, seen, listed, logged] = await Promise.all([
        adaReads.cell_get({ id }),
        anyone.cell_get({ id }),
        anyone.cell_list({ ids: [id] }),
        isHeld ? adaReads.cell_audit_list({ cell_id: id }) : undefined,
      ])
      expect([read.cell.data, seen.cell.data, listed.cells[0]?.data]).toEqual(Array(3).fill({ round }))
      if (!logged) return
      const updates = logged.events.filter(({ event_type }) => event_type === 'cell_update')
      expect(updates).toHaveLength(Math.min(50, round))
    })
    if (isHeld) expect(found.served).toBe(0)
    await (resumed ?? replay('resume'))
  }
})

it('a caller who lost a right, or a cell, never reads it again', async () => {
  for (let round = 0; round < rounds / 10; round++) {
    await replay('resume')
    const { cell: one } = await ada.client.cell_create({ kind: 'secret', data: { round } })
    const { grant } = await ada.client.cell_grant_create({
      cell_id: one.id,
      level: 'viewer',
      principal: { kind: 'actor', actor_id: bob.actor_id },
    })
    const bobSees = () => bobReads.cell_get({ id: one.id })
    expect((await bobSees()).cell.data).toEqual({ round })
    await replay('pause')
    await ada.client.cell_grant_revoke({ grant_id: grant.id })
    expect(await reasonOf(bobSees())).toBe('cell_not_found')
    await replay('resume')
    await ada.client.cell_update({ cell_id: one.id, visibility: 'public' })
    const lists = async () => (await anyone.cell_list({ kind: 'secret' })).cells.map((listed) => listed.id)
    expect(await lists()).toEqual([one.id])
    await replay('pause')
    await ada.client.cell_update({ cell_id: one.id, visibility: 'private' })
    expect(await lists()).toEqual([])
    expect(await reasonOf(anyone.cell_get({ id: one.id }))).toBe('cell_not_found')
    await replay('resume')
    expect((await adaReads.cell_get({ id: one.id })).can_edit).toBe(true)
    await replay('pause')
    await ada.client.cell_delete({ cell_id: one.id })
    expect(await reasonOf(adaReads.cell_get({ id: one.id }))).toBe('cell_not_found')
  }
})

it('a replica that lags is not used until it has caught up; readiness warns meanwhile', async () => {
  await replay('pause')
  await ada.client.cell_update({ cell_id: id, data: { round: 0 } })
  await inUse(false)
  expect(await counted(() => adaReads.cell_get({ id }))).toEqual({ served: 0, behind: 0, failed: 0 })
  expect(replica?.lagMs).toBeGreaterThan(1_000)
  expect(reader.service.app.warnings).toContain('replica_down')
  await replay('resume')
  await back()
  expect(reader.service.app.warnings).not.toContain('replica_down')
  await isServed(() => adaReads.cell_get({ id }), ['caller'])
})

it('the doctor says which replica is not used, and why', async () => {
  const found = async (urls: string[], env: Environment = {}, options: string[] = []) => {
    const { stdout } = await shell(
      {
        CELLKEEP_DATABASE_URL: primary.url,
        CELLKEEP_COOKIE_KEYS: 'a key of at least thirty-two characters',
        CELLKEEP_DATABASE_REPLICA_URLS: urls.join(' '),
        ...env,
      },
      tmpdir(),
    )(['doctor', '--json', ...options])
    const lines = stdout.split('\n').filter((line) => line.includes('replica_'))
    return lines.map((line) => {
      const { finding, what } = JSON.parse(line)
      return `${finding}: ${what}`
    })
  }
  await back()
  const rowsRead = async () =>
    (await follower.query(`select seq_tup_read::int as rows from pg_stat_user_tables where relname = 'cell'`))
      .rows[0].rows
  // What other sessions read earlier may be reported only now.
  await expect
    .poll(async () => {
      const before = await rowsRead()
      return { found: await found([standby.url]), read: (await rowsRead()) - before }
    })
    .toEqual({ found: [], read: 0 })
  const before = await rowsRead()
  // `--deep` reads the rows themselves on the standby.
  expect(await found([standby.url], {}, ['--deep'])).toEqual([])
  // A session reports its reads when it ends.
  await expect.poll(rowsRead).toBeGreaterThan(before)
  expect(await found([primary.url, standby.url, 'postgres://cellkeep@127.0.0.1:1/none'])).toEqual([
    expect.stringContaining('replica_down: Replica 1 is not used: the server is not a standby'),
    expect.stringContaining('replica_down: Replica 3 is not used: connect ECONNREFUSED'),
  ])
  await replay('pause')
  await ada.client.cell_update({ cell_id: id, data: { is: 'not on the replica' } })
  expect(await found([standby.url], { CELLKEEP_REPLICA_LAG_MAX_MS: '100' })).toEqual([
    expect.stringContaining('replica_behind: Replica 1'),
  ])
  await replay('resume')
})

it('a backup from a replica has everything that was acknowledged before it began', async () => {
  await back()
  const dir = await mkdtemp(join(tmpdir(), 'ck-from-replica-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  const backup = (...urls: string[]) =>
    shell(
      {
        CELLKEEP_DATABASE_URL: primary.url,
        CELLKEEP_COOKIE_KEYS: 'a key of at least thirty-two characters',
        CELLKEEP_DATABASE_REPLICA_URLS: urls.join(' '),
      },
      dir,
    )(['backup', 'file', '--from-replica'])
  expect(await backup()).toMatchObject({ code: 2 })
  expect(await backup(primary.url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No replica can be used: the server is not a standby'),
  })

  await replay('pause')
  const { cell: late } = await ada.client.cell_create({ data: { is: 'late' } })
  const ended = backup('postgres://cellkeep@127.0.0.1:1/none', standby.url)
  const waiting = `select from pg_stat_activity where application_name = 'cellkeep backup' and query ~ 'replay'`
  await expect.poll(async () => (await follower.query(waiting)).rowCount).toBe(1)
  expect(await readdir(dir)).toEqual([])
  await replay('resume')
  expect(await ended).toMatchObject({ code: 0 })
  const to = await emptyDatabase()
  onTestFinished(to.drop)
  await restoreBackup(to.connection, join(dir, 'file'))
  const client = await to.open()
  expect((await client.query('select data from cell where id = $1', [late.id])).rows).toEqual([
    { data: { is: 'late' } },
  ])
})

/** Keeps reading while `work` runs; each read must succeed. */
async function underReads(work: () => Promise<void>): Promise<void> {
  const ended = new AbortController()
  const loops = [adaReads, bobReads, anyone].map(async (client) => {
    while (!ended.signal.aborted) {
      expect((await client.cell_get({ id })).cell.id).toBe(id)
      expect((await client.cell_list({ ids: [id] })).cells).toHaveLength(1)
      // Leaves processor time to the servers.
      await delay(5)
    }
  })
  await work().finally(() => ended.abort())
  await Promise.all(loops)
}

it('no call fails for a replica that hangs or ends', async () => {
  await underReads(async () => {
    await back()
    await standby.freeze()
    await inUse(false)
    await standby.thaw()
    await back()
    await standby.stop()
    await inUse(false)
    await standby.start()
    await back()
  })
})

it('a read is answered by the primary soon when its connection to a replica is lost without a sign', async () => {
  const [reading, lost] = [new Set<Socket>(), new Set<Socket>()]
  let asked = 0
  const proxy = await postgresProxy(new pg.Client(standby.url), (near, far) => {
    near.on('data', (chunk: Buffer) => {
      if (chunk.includes("pg_last_wal_replay_lsn() - '0/0' >= ")) reading.add(near)
      if (chunk.includes('wait_event_type')) asked += 1
      if (!lost.has(near)) far.write(chunk)
    })
    far.on('data', (chunk: Buffer) => near.write(chunk))
  })
  const node = await testService({
    database_url: primary.url,
    database_replica_urls: [toUrl(proxy.connection)],
  })
  await expect.poll(() => node.service.app.db.replicas?.all[0]?.isFit).toBe(true)
  await node.client().cell_get({ id })
  expect(reading.size).toBe(1)
  for (const one of reading) lost.add(one)
  expect((await node.client().cell_get({ id })).cell.id).toBe(id)
  expect(asked).toBeGreaterThan(0)
  await node.close()
  await proxy.close()
})

it('a replica that was promoted, or that went another way than the primary, is not used', async () => {
  await underReads(async () => {
    await on(standby.url, 'select pg_promote()', 'delete from cellkeep.cell')
    await inUse(false)
    await expect.poll(() => replica?.why).toMatchObject({ why: 'read_only' })
    await standby.stop()
    await standby.demote()
    await standby.start()
    await expect.poll(() => replica?.why).toMatchObject({ why: 'timeline' })
  })
})

it('a standby of another database is not used', async () => {
  const other = await testService({ database_url: foreign.url })
  await other.close()
  await foreign.stop()
  await foreign.demote()
  await foreign.start()
  const strange = await testService({
    database_url: primary.url,
    database_replica_urls: [foreign.url],
    log: silentLog,
  })
  const [one] = strange.service.app.db.replicas?.all ?? []
  await expect.poll(() => one?.why).toMatchObject({ why: 'cluster' })
  expect((await strange.client().cell_get({ id })).cell.id).toBe(id)
  await strange.close()
})

it('without a replica, no statement asks for a place in the log', async () => {
  statements.length = 0
  await writer.client().cell_get({ id })
  await ada.client.cell_list({})
  expect(statements).toHaveLength(3)
  expect(statements.filter((text) => /lsn/.test(text))).toEqual([])
})

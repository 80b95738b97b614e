import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { call, dataOf, rpc, send } from '../../../test/helpers/http.ts'
import { postgresProxy } from '../../../test/helpers/postgres-proxy.ts'
import { rival } from '../../../test/helpers/race.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { on, rebuild, twins } from '../../../test/helpers/twins.ts'
import { restoreBackup } from '../../backup/restore.ts'
import { mutation } from '../../core/declare.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'
import { sql } from '../db.ts'

const runs: string[] = []
const auth = { account: 'required', actor: 'required' } as const
const note = {
  doc: 'Writes a note in two statements.',
  auth,
  event: 'cell_update',
  input: z.strictObject({ text: z.string() }),
  output: z.null(),
} as const
const noted = async ({ text }: { text: string }, { db }: { db: Parameters<typeof write>[0] }) => {
  runs.push(text)
  await write(db, text)
  return null
}
const write = async (db: Pick<TestService['service']['app']['db'], 'run'>, text: string): Promise<void> => {
  await db.run(sql`insert into note (text) values (${text})`)
  await db.run(sql`select`)
}
const actions = {
  note: mutation({ ...note, handler: noted }),
  note_once: mutation({ ...note, repeat: false, handler: noted }),
}

/** A proxy between the service and a server: what it cuts or drops is lost on the way. */
async function wire(url: string) {
  const near = new Set<Socket>()
  const swallow = { commits: 0 }
  const { searchParams, username, pathname } = new URL(url)
  const target = {
    host: searchParams.get('host') as string,
    port: Number(searchParams.get('port')),
    user: username,
    database: pathname.slice(1),
  }
  const proxy = await postgresProxy(target, (one, far) => {
    near.add(one)
    one.on('close', () => near.delete(one))
    one.on('data', (chunk: Buffer) => {
      far.write(chunk)
      if (swallow.commits === 0 || !chunk.includes('commit\0')) return
      swallow.commits -= 1
      // The server receives the commit, but the answers to it and to the statements before it are dropped.
      far.removeAllListeners('data')
      let answer = ''
      far.on('data', (chunk: Buffer) => {
        answer += chunk.toString('latin1')
        if (answer.includes('COMMIT\0')) one.destroy()
      })
    })
    far.on('data', (chunk: Buffer) => void one.write(chunk))
  })
  const cut = (): void => {
    for (const one of near) one.destroy()
  }
  return { host: `127.0.0.1:${proxy.connection.port}`, cut, near, swallow, close: proxy.close }
}

let pair: Awaited<ReturnType<typeof twins>>
let wires: Awaited<ReturnType<typeof wire>>[]
let test: TestService
let ada: TestAccount
const urlOf = (hosts: string[]): string => `postgres://cellkeep@${hosts.join(',')}/postgres`

beforeAll(async () => {
  pair = await twins(async (url) => {
    await using first = await testService({ database_url: url, actions })
    ada = await first.account()
    await on(url, 'create table cellkeep.note (text text)')
  })
  wires = [await wire(pair.one.url), await wire(pair.other.url)]
  test = await testService({ database_url: urlOf(wires.map(({ host }) => host)), actions })
})
afterAll(async () => {
  await test.close()
  for (const { cut, close } of wires) {
    cut()
    await close()
  }
  await Promise.all([pair.one.remove(), pair.other.remove()])
})

const noteOn = async (url: string) =>
  (await on(url, 'select text from cellkeep.note')).map(({ text }) => text as string)
const send_ = (method: string, text: string, { url } = test) =>
  rpc(url, call(method, { text }), { cookie: ada.cookie })
const ready = async () => (await send(test.url, { path: '/health/ready' })).json
let made = 0
/** For more: `CUTS=100 KEYS=10000 npx vitest run src/db/servers/failover.test.ts -t 'cuts|key'`. */
const cuts = Number(process.env.CUTS ?? 12)
const keys = Number(process.env.KEYS ?? 40)

/** A service whose calls wait for as long as this machine takes to start the other server. */
const patient = () =>
  testService({ database_url: urlOf(wires.map(({ host }) => host)), actions, database_wait_ms: 30_000 })

/** Writes all the time; reports what was acknowledged and how the rest failed. */
function writers(on = test) {
  const told = { done: [] as string[], unknown: [] as string[], failed: [] as unknown[] }
  const open = new Set<Promise<unknown>>()
  let isOver = false
  const loops = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const text = `n${made++}`
      const sent = send_('note', text, on)
      open.add(sent)
      const reply = await sent.finally(() => open.delete(sent))
      if (reply.status === 200) told.done.push(text)
      else if (dataOf(reply)?.outcome === 'unknown') told.unknown.push(text)
      else told.failed.push([reply.status, dataOf(reply)])
    }
  })
  return {
    told,
    open,
    stop: async () => {
      isOver = true
      await Promise.all(loops)
      return told
    },
  }
}

it('cuts of every connection lose no call but those whose COMMIT was sent, which are told as unknown', async () => {
  const load = writers()
  for (let n = 0; n < cuts; n++) {
    await new Promise((resolve) => setTimeout(resolve, 40 * Math.random()))
    wires[0]?.cut()
    // A call is repeated only once, so one that is hit twice may fail.
    await Promise.all(load.open)
  }
  const { done, unknown, failed } = await load.stop()
  expect(failed).toEqual([])
  expect(done.length).toBeGreaterThan(20)
  const stored = await noteOn(pair.one.url)
  expect(new Set(stored).size).toBe(stored.length)
  expect(done.filter((text) => !stored.includes(text))).toEqual([])
  expect(stored.filter((text) => ![...done, ...unknown].includes(text))).toEqual([])
})

it('a COMMIT whose answer is lost is unknown and never repeated', async () => {
  const [near] = wires
  if (!near) throw new Error('no wire')
  const before = runs.length
  near.swallow.commits = 5
  const texts = Array.from({ length: 5 }, () => `s${made++}`)
  for (const text of texts) {
    const reply = await send_('note', text)
    expect([reply.status, dataOf(reply)]).toMatchObject([503, { outcome: 'unknown' }])
    expect(reply.headers['retry-after']).toMatch(/^([1-9]|10)$/)
  }
  expect(runs.length - before).toBe(5)
  const stored = await noteOn(pair.one.url)
  expect(texts.map((text) => stored.filter((one) => one === text).length)).toEqual([1, 1, 1, 1, 1])
})

it('a call with a key, repeated on either node until it is answered, has one effect and one reply', async () => {
  const options = { database_url: urlOf(wires.map(({ host }) => host)), limit_cell_create: 'off' } as const
  await using near = await testService(options)
  await using far = await testService(options)
  const nodes = [near, far] as const
  const create = (key: number, turn: number) =>
    rpc(nodes[turn % 2 ? 1 : 0].url, call('cell_create', { data: { key } }), {
      ...{ cookie: ada.cookie, 'idempotency-key': `the_key_number_${key}` },
    })
  const [wire] = wires
  if (!wire) throw new Error('no wire')
  wire.swallow.commits = 1
  const lost = await create(0, 0)
  expect([lost.status, dataOf(lost)]).toMatchObject([503, { outcome: 'unknown' }])
  expect((await create(0, 1)).headers).toMatchObject({ 'idempotency-replayed': 'true' })

  let next = 1
  const callers = Array.from({ length: 4 }, async () => {
    for (let key = next++; key < keys; key = next++) {
      if (key % 4 === 0) wire.swallow.commits = 1
      let turn = 0
      let sent = create(key, turn)
      if (key % 4 === 2) wire.cut()
      for (; (await sent).status !== 200; sent = create(key, ++turn)) expect((await sent).status).toBe(503)
      const again = await create(key, turn + 1)
      if (again.status === 200) expect(again.text).toBe((await sent).text)
    }
  })
  await Promise.all(callers)
  wire.swallow.commits = 0
  const made = await on(pair.one.url, `select data->>'key' as key from cellkeep.cell where data ? 'key'`)
  expect(made.map(({ key }) => Number(key)).sort((a, b) => a - b)).toEqual([...Array(keys).keys()])
  const [{ rows }] = (await on(
    pair.one.url,
    'set search_path = cellkeep',
    `select count(*)::int as rows from audit_entries() where event_type = 'cell_create' and outcome = 'success'`,
  )) as [{ rows: number }]
  expect(rows).toBe(keys)
})

it('`repeat: false` keeps a handler from running twice', async () => {
  const other = await rival(pair.one.url)
  onTestFinished(other.close)
  await other.begin('lock table cellkeep.note')
  const [twice, once] = ['twice', 'once']
  const replies = [send_('note', twice), send_('note_once', once)]
  await other.blocks(2)
  wires[0]?.cut()
  await other.commit()
  const [repeated, refused] = await Promise.all(replies)
  expect(repeated?.status).toBe(200)
  expect([refused?.status, refused && dataOf(refused)]).toMatchObject([503, { outcome: 'none' }])
  expect(runs.filter((text) => text === twice)).toHaveLength(2)
  expect(runs.filter((text) => text === once)).toHaveLength(1)
})

it('a call is repeated once the server has cut every connection, which it does one by one', async () => {
  const other = await rival(pair.one.url)
  onTestFinished(other.close)
  await other.begin('lock table cellkeep.note')
  const sent = send_('note', 'cut')
  await other.blocks(1)
  wires[0]?.cut()
  await new Promise((resolve) => setTimeout(resolve, 20))
  wires[0]?.cut()
  await other.commit()
  expect((await sent).status).toBe(200)
  expect(runs.filter((text) => text === 'cut')).toHaveLength(2)
})

it('a backup that loses its connection leaves no file, unless it is whole by then', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'ck-cut-'))
  const other = await rival(pair.one.url)
  onTestFinished(async () => {
    await other.close()
    await rm(dir, { recursive: true })
  })
  const run = shell({ CELLKEEP_DATABASE_URL: urlOf(wires.map(({ host }) => host)) }, dir)
  const backup = async (held: string) => {
    await other.begin(held)
    const ended = run(['backup', 'file'])
    // Only the backup's own wait counts: the service, which lost its connections too, asks for that row when it is
    // back.
    const waiting = `select from pg_stat_activity where application_name = 'cellkeep backup' and wait_event_type = 'Lock'`
    await expect.poll(() => on(pair.one.url, waiting)).toHaveLength(1)
    wires[0]?.cut()
    const { code, stderr } = await ended
    await other.commit()
    return [code, stderr]
  }
  // It waits in the middle the first time, and then only to record that it is done.
  expect(await backup('reindex table cellkeep.invite')).toEqual([1, expect.stringContaining('Run it again.')])
  expect(await readdir(dir)).toEqual([])
  expect(await backup('select from cellkeep.cluster for update')).toEqual([0, ''])
  const to = await emptyDatabase()
  onTestFinished(to.drop)
  await restoreBackup(to.connection, join(dir, 'file'))
})

it('a database that is set read-only is refused until it is not', async () => {
  const set = (to: string) =>
    on(
      pair.one.url,
      'set default_transaction_read_only = off',
      `alter database postgres set default_transaction_read_only = ${to}`,
    )
  await set('on')
  await expect.poll(ready).toEqual({ error: 'db_read_only' })
  expect((await send_('note', 'never')).status).toBe(503)
  expect((await send(test.url, { path: '/health/serving' })).status).toBe(200)
  await set('off')
  await expect.poll(async () => (await send_('note', 'again')).status).toBe(200)
  await expect.poll(ready).toEqual({ ready: true })
})

it('a switchover under load fails no call but those whose COMMIT was sent', async () => {
  await using service = await patient()
  const load = writers(service)
  await expect.poll(() => load.told.done.length).toBeGreaterThan(20)
  await pair.one.stop()
  await on(pair.other.url, 'select pg_promote()')
  const before = load.told.done.length
  await expect.poll(() => load.told.done.length).toBeGreaterThan(before + 20)
  const { done, failed } = await load.stop()
  expect(failed).toEqual([])
  const stored = await noteOn(pair.other.url)
  expect(done.slice(before + 8).filter((text) => !stored.includes(text))).toEqual([])
})

it('a frozen primary is left for its successor, and takes no write once it is thawed', async () => {
  const { one, other } = pair
  await other.stop()
  await rebuild(other, one)
  await Promise.all([one.start(), other.start()])
  await using service = await patient()
  const load = writers(service)
  await expect.poll(() => load.told.done.length).toBeGreaterThan(20)
  await other.freeze()
  await on(one.url, 'select pg_promote()')
  const before = load.told.done.length
  await expect.poll(() => load.told.done.length).toBeGreaterThan(before + 20)
  await other.thaw()
  const thawed = load.told.done.length
  await expect.poll(() => load.told.done.length).toBeGreaterThan(thawed + 20)
  const { done, failed } = await load.stop()
  expect(failed).toEqual([])
  const [kept, old] = [await noteOn(one.url), await noteOn(other.url)]
  const later = done.slice(before + 8)
  expect(later.filter((text) => !kept.includes(text) || old.includes(text))).toEqual([])
})

it('where only a replaced primary answers, nothing is written until a process starts anew', async () => {
  await expect.poll(async () => (await send_('note', 'seen')).status).toBe(200)
  await pair.one.stop()
  await expect.poll(ready).toEqual({ error: 'stale_primary' })
  expect((await send_('note', 'lost')).status).toBe(503)
  await using restarted = await testService({ database_url: pair.other.url, actions })
  expect((await rpc(restarted.url, call('note', { text: 'taken' }), { cookie: ada.cookie })).status).toBe(200)
  await pair.one.start()
  await expect.poll(async () => (await send_('note', 'back')).status).toBe(200)
})

it('a database with another id is refused, also by balancers', async () => {
  const [{ id } = { id: '' }] = await on(pair.one.url, 'select id from cellkeep.cluster')
  await on(pair.one.url, 'update cellkeep.cluster set id = gen_random_uuid()')
  await pair.other.stop()
  wires[0]?.cut()
  await expect.poll(ready).toEqual({ error: 'db_other_database' })
  expect((await send(test.url, { path: '/health/serving' })).json).toEqual({ error: 'db_other_database' })
  await on(pair.one.url, `update cellkeep.cluster set id = '${id}'`)
  await expect.poll(async () => (await send_('note', 'home')).status).toBe(200)
})

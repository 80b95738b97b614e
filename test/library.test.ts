import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { Gauge, Registry } from 'prom-client'
import { expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createService, type Log, query, type ServiceError, type ServiceOptions } from '../src/index.ts'
import { silentLog } from '../src/log/log.ts'
import { testService } from '../src/testing/index.ts'
import { alive, serverProcesses, testDirectory } from './embedded.ts'
import { furnish } from './kept-database.ts'

/** The library as its consumers use it, through `createService`. */

const dir = await testDirectory()
/** A data dir that already has a database, because making one is not tested here. */
async function furnished(name: string): Promise<string> {
  const dataDir = join(dir, name)
  await furnish(dataDir)
  return dataDir
}
const page_count = query({
  doc: 'How many pages there are.',
  auth: { account: 'none', actor: 'none' },
  input: z.strictObject({ kind: z.string() }),
  output: z.object({ pages: z.int() }),
  handler: async () => ({ pages: 0 }),
})
const options = {
  argon2: '8,1,1',
  env: 'development',
  bootstrap: 'live',
  log: silentLog,
  ...(process.env.CELLKEEP_POSTGRES_BIN && { postgres_bin: process.env.CELLKEEP_POSTGRES_BIN }),
} as const satisfies ServiceOptions

it('runs an embedded database in a data dir, keeps what it holds, and stops it with the service', async () => {
  const data_dir = join(dir, 'data')
  const first = await createService({ ...options, data_dir })
  const { account } = await first.operations.createAccount(
    { username: 'ada', password: 'a long password', email: null },
    { via: 'testing' },
  )
  const login = (service: Pick<typeof first, 'fetch'>) =>
    service.fetch(
      new Request('http://localhost/api/account/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username: 'ada', password: 'a long password' }),
      }),
      { address: '127.0.0.1' },
    )
  const cookie = (await login(first)).headers.get('set-cookie')?.split(';')[0] as string
  const pids = await serverProcesses(data_dir)
  expect(pids.length).toBeGreaterThan(3)
  await Promise.all([first.close(), first.close()])
  expect(await alive(pids)).toEqual([])

  await using second = await createService({ ...options, data_dir })
  const id = account.id
  for (const headers of [
    { cookie },
    { Cookie: cookie, via: undefined, 'set-cookie': [] },
    new Headers({ cookie }),
  ])
    expect(await second.call('account_verify', {}, { headers })).toMatchObject({ id })
  await expect(second.call('account_verify')).rejects.toMatchObject({ reason: 'authentication_required' })
  // One service at a time may use a data dir, even within one process.
  await expect(createService({ ...options, data_dir })).rejects.toMatchObject({ reason: 'data_dir_locked' })
})

it('stops the database if the service cannot be made', async () => {
  const data_dir = await furnished('broken')
  const broken = createService({ ...options, data_dir, actions: { account_verify: page_count } })
  await expect(broken).rejects.toMatchObject({ reason: 'invalid_action' })
  expect(await serverProcesses(data_dir)).toEqual([])
})

const mail = {
  mail: 'smtp',
  smtp_url: 'smtp://127.0.0.1:1',
  mail_from: 'keep@app.example',
  link_url: 'http://localhost/link',
  secret_keys: ['a key of tests, a key of tests, a key'],
} as const
/** A directory of mail templates with a file that belongs to no message. */
async function directory(): Promise<string> {
  const templates = join(dir, 'templates')
  await mkdir(templates)
  await writeFile(join(templates, 'zzz.txt'), 'None')
  return templates
}

it('closes its connections if the service cannot be made', async () => {
  const test = await testService()
  onTestFinished(() => test.close())
  await test.service.close()
  const watcher = new pg.Client(test.databaseUrl)
  await watcher.connect()
  onTestFinished(() => watcher.end())
  const others = async () =>
    (
      await watcher.query(`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`)
    ).rows[0].n
  const metrics = new Registry()
  metrics.registerMetric(new Gauge({ name: 'cellkeep_readiness', help: 'Mine.', registers: [] }))
  const broken: [ServiceOptions, RegExp][] = [
    [{ metrics }, /cellkeep_readiness.*A registry of prom-client serves one service/],
    [{ traces: {} as never }, /traces is not the module @opentelemetry\/api/],
    [{ mail_templates: await directory(), ...mail }, /zzz.txt does not have the name of a message/],
  ]
  const database = { database_url: test.databaseUrl, cookie_keys: ['a key of tests, a key of tests, a key'] }
  for (const [more, why] of broken) {
    await expect(createService({ ...options, ...database, ...more })).rejects.toThrow(why)
    await expect.poll(others).toBe(0)
  }
  expect(metrics.getMetricsAsArray()).toHaveLength(1)
})

it('names both ways to a database if it is given none', async () => {
  for (const given of [options, undefined as never, null as never])
    await expect(createService(given)).rejects.toThrow(/database_url or, .*data_dir/)
})

it('names parts of the host that it cannot use, before anything is opened', async () => {
  const parts = {
    log: {},
    onStatement: 5,
    check_outputs: 'no',
    heartbeat: 'false',
    metrics: { register() {} },
  }
  const data_dir = join(dir, 'never-made')
  const refusal = await createService({ ...options, ...(parts as object), data_dir }).catch((error) => error)
  expect(refusal).toMatchObject({ name: 'ConfigError', reason: 'configuration' })
  const named = refusal.problems.map((problem: string) => problem.split(' ')[0])
  expect(named).toEqual(Object.keys(parts))
  expect(existsSync(data_dir)).toBe(false)
})

it.each(['20.20.2', '22.17.1'])('says on Node %s which one it needs', async (node) => {
  const { versions } = process
  Object.defineProperty(process, 'versions', { value: { ...versions, node } })
  onTestFinished(() => void Object.defineProperty(process, 'versions', { value: versions }))
  const data_dir = join(dir, 'never')
  await expect(createService({ ...options, data_dir })).rejects.toThrow('Node.js 22.18 or newer')
  expect(existsSync(data_dir)).toBe(false)
})

it('types calls by their method, and lists all methods with what a caller has to know', async () => {
  const service = await createService({
    ...options,
    data_dir: await furnished('typed'),
    actions: { page_count },
  })
  onTestFinished(() => service.close())
  const counted = await service.call('page_count', { kind: 'page' })
  expectTypeOf(counted).toEqualTypeOf<{ pages: number }>()
  expect(counted).toEqual({ pages: 0 })
  const listed = await service.call('cell_list')
  expectTypeOf(listed.cells[0]?.version).toEqualTypeOf<number | undefined>()
  // @ts-expect-error `kind` is a string.
  await expect(service.call('page_count', { kind: 7 })).rejects.toMatchObject({
    data: { reason: 'invalid_params' },
  } satisfies Partial<ServiceError>)
  // @ts-expect-error There is no such method.
  await expect(service.call('page_cuont', {})).rejects.toMatchObject({ data: { reason: 'method_not_found' } })
  const name: string = 'page_count'
  expectTypeOf(service.call(name, { kind: 'page' })).toEqualTypeOf<Promise<unknown>>()

  const method = (wanted: string) => service.methods.find(({ name }) => name === wanted)
  expect(method('page_count')).toMatchObject({
    doc: 'How many pages there are.',
    kind: 'query',
    auth: { account: 'none' },
    errors: [],
  })
  expect(method('cell_update')).toMatchObject({ kind: 'mutation', scope: 'rpc:cell_update' })
  expect(method('cell_update')?.errors).toContain('cell_version_conflict')
  for (const { name, input, output } of service.methods) {
    const schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
    expect(schema, name).toMatchObject({ type: 'object', additionalProperties: false })
    expect(Object.keys(z.toJSONSchema(output, { unrepresentable: 'any' })), name).not.toEqual([])
  }
})

it('writes to any log of four functions', async () => {
  const lines: unknown[] = []
  const write = (...line: unknown[]) => void lines.push(line)
  const log: Log = { debug: write, info: write, warn: write, error: write }
  await using service = await createService({ ...options, data_dir: await furnished('log'), log })
  await service.fetch(new Request('http://localhost/health'), { address: '127.0.0.1' })
  expect(lines).toContainEqual([expect.objectContaining({ path: '/health', status: 200 }), 'request'])
})

it('answers a call of its own although the log fails to write its error', async () => {
  const lines: string[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(line) })
  const frozen = query({
    doc: 'Fails.',
    auth: { account: 'none', actor: 'none' },
    output: z.null(),
    handler: async () => {
      throw Object.freeze(new Error('frozen'))
    },
  })
  const data_dir = await furnished('frozen')
  await using service = await createService({ ...options, data_dir, log, actions: { frozen } })
  await expect(service.call('frozen')).rejects.toMatchObject({ data: { reason: 'internal_error' } })
  expect(lines.join('')).toContain('"err":"Error: frozen\\n    at ')
})

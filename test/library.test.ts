import { join } from 'node:path'
import { expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createService, type Log, query, type ServiceError, type ServiceOptions } from '../src/index.ts'
import { silentLog } from '../src/log/log.ts'
import { alive, serverProcesses, testDirectory } from './embedded.ts'
import { furnish } from './kept-database.ts'

/** The library as a consumer holds it: `createService` on its own. */

const dir = await testDirectory()
/** A data dir with a database, whose making is not the subject. */
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
  // One serving process a data dir, in this process too.
  await expect(createService({ ...options, data_dir })).rejects.toMatchObject({ reason: 'data_dir_locked' })
})

it('stops the database if the service cannot be made', async () => {
  const data_dir = await furnished('broken')
  const broken = createService({ ...options, data_dir, actions: { account_verify: page_count } })
  await expect(broken).rejects.toMatchObject({ reason: 'invalid_action' })
  expect(await serverProcesses(data_dir)).toEqual([])
})

it('names both ways to a database if it is given none', async () => {
  await expect(createService(options)).rejects.toThrow(/database_url, or data_dir/)
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

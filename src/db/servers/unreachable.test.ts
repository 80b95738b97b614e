import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase, type FreshDatabase, migratedDatabase } from '../../../test/fresh-database.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { createService } from '../../create-service.ts'
import type { StartError } from '../../errors.ts'
import { toUrl } from '../../testing/cluster.ts'

const cookie_keys = ['k'.repeat(43)]

/** Why a service refuses to start with this URL. */
const refusalOf = async (database_url: string, more = {}): Promise<StartError> => {
  const started = await createService({ database_url, cookie_keys, log_level: 'error', ...more }).then(
    (service) => service.close(),
    (error: StartError) => error,
  )
  if (!started) throw new Error('The service started.')
  return started
}

async function kept(make: () => Promise<FreshDatabase>): Promise<FreshDatabase & { url: URL; name: string }> {
  const database = await make()
  onTestFinished(database.drop)
  return {
    ...database,
    url: new URL(toUrl({ ...database.connection, schema: undefined })),
    name: database.connection.database as string,
  }
}

/** The URL of the database for a role without rights; `words` are options of `create role`. */
async function asRole(
  { url, name, open, drop }: Awaited<ReturnType<typeof kept>>,
  words = '',
): Promise<string> {
  const owner = await open()
  const role = `${name}_guest`
  await owner.query(`create role ${role} login password 'guest' ${words}`)
  onTestFinished(async () => {
    const last = await emptyDatabase()
    await drop()
    await (await last.open()).query(`drop role ${role}`)
    await last.drop()
  })
  const guest = new URL(url)
  guest.username = role
  guest.password = 'guest'
  return guest.href
}

test('a URL past which the direct one leads is named as unreachable, by the start and by the doctor', async () => {
  const { url } = await kept(migratedDatabase)
  const refused = await refusalOf('postgres://nobody@127.0.0.1:1/none', { database_direct_url: url.href })
  expect(refused).toMatchObject({ reason: 'db_unreachable', exitCode: 3 })
  expect(refused.message).toMatch(/ECONNREFUSED.*Check that the database server is running\./)
  const env = {
    CELLKEEP_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    CELLKEEP_DATABASE_DIRECT_URL: url.href,
    CELLKEEP_COOKIE_KEYS: cookie_keys.join(),
  }
  const { code, stderr } = await shell(env, '/')(['doctor'])
  expect([code, stderr]).toEqual([3, expect.stringMatching(/^The database cannot be reached/)])
})

test('a user with fewer connections than a start needs is told so', async () => {
  const database = await kept(emptyDatabase)
  const guest = await asRole(database, 'connection limit 1')
  await (await database.open()).query(`grant create on database ${database.name} to ${database.name}_guest`)
  const refused = await refusalOf(guest)
  expect(refused).toMatchObject({ reason: 'db_unreachable', exitCode: 3 })
  expect(refused.message).toMatch(/too many connections.*Allow the server and the user more connections/)
})

test('a refused connection names what to change', async () => {
  const database = await kept(emptyDatabase)
  const { url, name } = database
  const guest = await asRole(database)
  const owner = await database.open()
  await owner.query(`revoke connect on database ${name} from public`)
  expect((await refusalOf(guest)).message).toMatch(/permission denied.*`grant connect on database/)

  const other = await kept(emptyDatabase)
  await owner.query(`alter database ${other.name} allow_connections false`)
  expect((await refusalOf(other.url.href)).message).toMatch(/not currently accepting.*allow_connections true/)

  for (const option of ['-c nope=1', '-c work_mem=x', '-c work_mem']) {
    const wrong = new URL(url)
    wrong.searchParams.set('options', option)
    expect((await refusalOf(wrong.href)).message).toMatch(/(parameter|value).*Correct `options` in the URL/)
  }
})

test('options that the user has no right to are sought in the URL', async () => {
  const database = await kept(emptyDatabase)
  const guest = new URL(await asRole(database))
  guest.searchParams.set('options', `-c role=${database.url.username}`)
  expect((await refusalOf(guest.href)).message).toMatch(/permission denied.*Correct `options` in the URL/)
})

test('a password that the server asks for and the URL lacks is named', async () => {
  const ask = (code: number, text: string) =>
    Buffer.concat([Buffer.from([0x52, 0, 0, 0, 8 + text.length, 0, 0, 0, code]), Buffer.from(text)])
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(ask(10, 'SCRAM-SHA-256\0\0'))
      socket.once('data', () => socket.write(ask(11, 'r=')))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  // Also if another server of the list is down.
  for (const login of ['u@', 'u:@', 'u@127.0.0.1:1,'])
    expect((await refusalOf(`postgres://${login}127.0.0.1:${port}/d`)).message).toBe(
      'The database cannot be reached: the server asks for a password, and the URL has none. Check the user and the password in the URL, and pg_hba.conf of the server.',
    )
})

test('a file that is no certificate of the client is sought in the URL', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.write('S')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const file = import.meta.filename
  const refused = await refusalOf(
    `postgres://u@127.0.0.1:${port}/d?sslmode=verify-full&sslcert=${file}&sslkey=${file}`,
  )
  expect(refused.message).toMatch(/PEM.*sslcert and sslkey in the URL/)
})

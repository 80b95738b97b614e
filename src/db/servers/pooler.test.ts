import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { type FreshDatabase, migratedDatabase } from '../../../test/fresh-database.ts'
import { hasBouncer, startBouncer } from '../../../test/helpers/bouncer.ts'
import { untilServed } from '../../../test/helpers/outcome.ts'
import { postgresProxy } from '../../../test/helpers/postgres-proxy.ts'
import { shell } from '../../../test/helpers/shell.ts'
import type { ServiceOptions } from '../../create-service.ts'
import { toUrl } from '../../testing/cluster.ts'
import { type TestService, testService } from '../../testing/index.ts'
import { sql } from '../db.ts'
import { roleSettings } from './admission.ts'
import { requireSuitable } from './suitable.ts'

if (!hasBouncer) console.log('not run: PgBouncer is not installed (apt-get install pgbouncer)')

async function bouncer({ connection }: FreshDatabase, mode?: 'statement'): Promise<string> {
  const { url, remove } = await startBouncer(connection as Parameters<typeof startBouncer>[0], 3, mode)
  onTestFinished(remove)
  return url
}

async function fresh(): Promise<FreshDatabase> {
  const database = await migratedDatabase()
  onTestFinished(database.drop)
  return database
}

async function withRoleSettings(database: FreshDatabase, lines: string): Promise<void> {
  const client = await database.open()
  // Set for the database, as other test files share the role.
  const name = pg.escapeIdentifier(database.connection.database ?? '')
  for (const line of lines.split('\n').filter((one) => one.startsWith('alter role')))
    await client.query(line.replace(/alter role "?ROLE"?/, `alter database ${name}`))
  // The pooler keeps its sessions, which keep the settings they began with.
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
}

it.runIf(hasBouncer)(
  'a pooler that shares sessions is refused without a direct URL, then for the limits it drops, with the lines that set them',
  async () => {
    const database = await fresh()
    const connection = { connectionString: await bouncer(database), schema: 'cellkeep' }
    const direct = toUrl({ ...database.connection, schema: undefined })
    const suits = (more = {}) =>
      requireSuitable({ connection: { ...connection, ...more }, statementTimeoutMs: 2_000 })
    const found = async (more = {}) => {
      const env = {
        CELLKEEP_DATABASE_URL: connection.connectionString,
        CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
        CELLKEEP_STATEMENT_TIMEOUT_MS: '2000',
        ...more,
      }
      const { stdout } = await shell(env, '/')(['doctor', '--json'])
      return /"((limits|pooler|db_feature|statement)_\w+)"/.exec(stdout)?.[1]
    }
    await expect(suits()).rejects.toMatchObject({ reason: 'pooler_transaction_mode', exitCode: 78 })
    expect(await found()).toBe('pooler_transaction_mode')
    const past = { CELLKEEP_DATABASE_DIRECT_URL: direct }
    expect(await found(past)).toBe('limits_not_in_force')
    const refused = await suits({ direct }).catch((error) => error)
    expect(refused).toMatchObject({ reason: 'limits_not_in_force', exitCode: 78 })
    expect(refused.message).toContain(`alter role "ROLE" set statement_timeout = '2000ms';`)
    expect(refused.message).toContain(`alter role "ROLE" set lock_timeout = '0';`)
    await withRoleSettings(database, refused.message)
    await expect.poll(() => suits({ direct }).catch(({ message }) => message)).toBeUndefined()
    const client = new pg.Client(connection.connectionString)
    await client.connect()
    await expect(client.query('select pg_sleep(12)')).rejects.toThrow(/statement timeout/)
    await client.end()
    expect(await found(past)).toBe('statement_names_lost')
    expect(await found({ ...past, CELLKEEP_DATABASE_STATEMENTS: 'unnamed' })).toBeUndefined()
    await withRoleSettings(database, 'alter role "ROLE" set array_nulls = off')
    await expect.poll(() => suits({ direct }).catch(({ message }) => message)).toMatch(/array_nulls = 'on'/)
  },
  180_000,
)

it.runIf(hasBouncer).each(['unnamed', 'named'] as const)(
  'two nodes behind a pooler that forgets names answer correctly with %s statements',
  async (database_statements) => {
    const database = await fresh()
    const direct = toUrl({ ...database.connection, schema: undefined })
    await withRoleSettings(
      database,
      roleSettings('ROLE', { statementMs: 10_000, idleMs: 30_000, schema: 'cellkeep' }),
    )
    const database_url = await bouncer(database)
    const options: ServiceOptions = {
      database_url,
      database_direct_url: direct,
      database_statements,
    }
    const nodes: TestService[] = []
    for (let n = 0; n < 2; n++) nodes.push(await testService(options))
    onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))))
    const [one, other] = nodes as [TestService, TestService]
    const ada = await one.account()
    const [near, far] = [ada.client, other.client(ada.cookie)]
    const made = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const [client, beside] = n % 2 ? [far, near] : [near, far]
        const { cell } = await untilServed(() => client.cell_create({ data: { n } }))
        const read = await untilServed(() => beside.cell_get({ id: cell.id }))
        await untilServed(() => client.cell_list({ limit: 2 }))
        return read.cell.data
      }),
    )
    expect(made).toEqual(Array.from({ length: 200 }, (_, n) => ({ n })))
    const cleaned = other.service.app.db.exclusively('cellkeep test', async () => {
      expect(await one.service.app.db.exclusively('cellkeep test', async () => 'twice')).toBeUndefined()
      return 'once'
    })
    expect(await cleaned).toBe('once')
    // A query cannot write through a pooler either.
    await expect(one.service.app.db.readOnly.rows(sql`delete from invite returning id`)).rejects.toThrow(
      /cannot write/,
    )
    await expect(one.service.app.db.point(sql`delete from invite returning id`)).rejects.toThrow(
      /cannot write/,
    )
  },
  180_000,
)

it.runIf(hasBouncer)('a pooler in statement mode is refused', async () => {
  const database = await fresh()
  const direct = toUrl({ ...database.connection, schema: undefined })
  const limits = { statementMs: 2_000, idleMs: 30_000, schema: 'cellkeep' }
  await withRoleSettings(database, roleSettings('ROLE', limits))
  const connection = { connectionString: await bouncer(database, 'statement'), direct, schema: 'cellkeep' }
  await expect(requireSuitable({ connection, statementTimeoutMs: 2_000 })).rejects.toMatchObject({
    reason: 'pooler_statement_mode',
    exitCode: 78,
  })
})

it('an engine whose advisory locks always succeed is refused', async () => {
  const database = await fresh()
  const client = await database.open()
  await client.query(
    `set allow_system_table_mods = on;
     create or replace function pg_catalog.pg_try_advisory_lock(bigint) returns boolean language sql as 'select true'`,
  )
  const url = toUrl({ ...database.connection, schema: undefined })
  const connection = { connectionString: url, schema: 'cellkeep' }
  await expect(requireSuitable({ connection, statementTimeoutMs: 10_000 })).rejects.toMatchObject({
    reason: 'pooler_transaction_mode',
    exitCode: 78,
  })
  await expect(
    requireSuitable({ connection: { ...connection, direct: url }, statementTimeoutMs: 10_000 }),
  ).rejects.toMatchObject({ reason: 'db_unsuitable', exitCode: 3 })
})

it('PostgreSQL itself is fit, which two connections tell', async () => {
  const database = await fresh()
  let opened = 0
  const { connection, close } = await postgresProxy(database.connection, (near, far) => {
    opened += 1
    near.pipe(far).pipe(near)
  })
  onTestFinished(close)
  await requireSuitable({ connection: { ...connection, schema: 'cellkeep' }, statementTimeoutMs: 10_000 })
  expect(opened).toBe(2)
})

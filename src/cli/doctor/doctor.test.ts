import { globSync, readFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { rival } from '../../../test/helpers/race.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { keptDatabase } from '../../../test/kept-database.ts'
import { inMemory } from '../../../test/memory.ts'
import type { Environment } from '../../config/reading.ts'
import { sql } from '../../db/db.ts'
import { databaseUser } from '../../embedded/user.ts'
import {
  cloneDatabase,
  migratedTemplate,
  startCluster,
  type TestCluster,
  toUrl,
} from '../../testing/cluster.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'
import { fileFindings } from './files.ts'
import { levelOf } from './finding.ts'

const key = 'Zq3vX9-kLm0_TtYw7bHs4nRd8pGf2cJa'
const soundSettings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  autovacuum: 'on',
  max_prepared_transactions: '2',
}
let cluster: TestCluster
let test: TestService
let ada: TestAccount
let cwd: string
let dataDir: string
/** A service on a new database of the cluster. */
const ownService = async () => {
  const { connection } = await cloneDatabase(cluster.connection, await migratedTemplate(cluster.connection))
  return await testService({ database_url: toUrl(connection) })
}
beforeAll(async () => {
  // The other servers of the test run are tuned to be fast, which would be a finding.
  cluster = await startCluster({ within: inMemory(), settings: soundSettings, from: keptDatabase() })
  test = await ownService()
  ada = await test.account({ roles: ['keeper', 'admin'] })
  await db(sql`update bootstrap_lock set bootstrapped = true`)
})
afterAll(async () => {
  await test.close()
  await cluster.stop()
})
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'ck-doc-'))
  dataDir = join(cwd, '.cellkeep')
  await mkdir(dataDir, { mode: 0o700 })
})
afterEach(() => rm(cwd, { recursive: true }))

const db = (query: Parameters<typeof test.service.app.db.run>[0]) => test.service.app.db.run(query)
const doctor = (env: Environment = {}, args: string[] = []) =>
  shell(
    { CELLKEEP_DATABASE_URL: test.databaseUrl, CELLKEEP_COOKIE_KEYS: key, ...env },
    cwd,
  )(['doctor', ...args])

/** The names of the findings; checks that they decide the exit code. */
async function found(env: Environment = {}): Promise<string[]> {
  const { code, stdout, stderr } = await doctor(env, ['--json'])
  const findings = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  expect(stderr).toBe('')
  expect(code).toBe(findings.some(({ level }) => level === 'error') ? 1 : 0)
  for (const { level, what, remedy } of findings) {
    expect(['error', 'warning']).toContain(level)
    expect([what, remedy]).toEqual([expect.any(String), expect.any(String)])
  }
  return findings.map(({ finding }) => finding)
}

it('a sound installation has no findings', async () => {
  expect(await found()).toEqual([])
  expect(await doctor()).toMatchObject({ code: 0, stdout: 'Nothing is wrong.\n' })
})

it('names whose role requires a second factor that is missing', async () => {
  const required = { CELLKEEP_REQUIRE_SECOND_FACTOR: 'admin' }
  // Without secret keys, nobody can add a second factor.
  expect(await found(required)).toEqual(['configuration', 'second_factor_missing'])
  const env = { ...required, CELLKEEP_SECRET_KEYS: key }
  expect(await found(env)).toEqual(['second_factor_missing'])
  expect((await doctor(env)).stdout).toContain(ada.username)
  await db(
    sql`insert into account_totp (account_id, secret_sealed, confirmed_at) values (${ada.id}::uuid, 'x', now())`,
  )
  expect(await found(env)).not.toContain('second_factor_missing')
  await db(sql`delete from account_totp`)
})

it('a database that does not answer ends in exit code 3, behind what the files tell', async () => {
  await chmod(dataDir, 0o777)
  for (const CELLKEEP_DATABASE_SCHEMA of [undefined, 'cellkeep']) {
    const { code, stdout } = await doctor(
      { CELLKEEP_DATABASE_URL: 'postgres://u@127.0.0.1:1/d', CELLKEEP_DATABASE_SCHEMA },
      ['--json'],
    )
    expect([code, stdout.match(/"open_to_others"/g)?.length]).toEqual([3, 1])
  }
})

it('the guide names every finding, and which are warnings', () => {
  const page = readFileSync('docs/doctor.md', 'utf8')
  const texts = globSync('src/{cli/doctor/!(*.test),verify/authority}.ts').map((one) =>
    readFileSync(one, 'utf8'),
  )
  // The name of a finding stands alone on a line, or after `finding:`.
  const names = texts.flatMap((text) => [...text.matchAll(/(?:finding: |^ +)'([a-z]+(?:_[a-z]+)+)',$/gm)])
  expect(names.length).toBeGreaterThan(40)
  for (const [, name = ''] of names) {
    const isWarning = new RegExp(`\`${name}\` \\*\\*W`).test(page)
    expect([name, page.includes(`\`${name}\``), isWarning]).toEqual([name, true, levelOf(name) === 'warning'])
  }
})

it('each finding says what is wrong and what to do', async () => {
  await db(sql`update role_grant set revoked_at = now() where role = 'keeper'`)
  const { stdout } = await doctor()
  await db(sql`update role_grant set revoked_at = null where role = 'keeper'`)
  expect(stdout).toBe(
    'no_keeper\n  There is no keeper.\n  → Run `cellkeep keeper transfer REF` with the account of the new keeper.\n\n',
  )
})

describe('who may do what', () => {
  it('no keeper, no admin: removed actors and expired grants do not count', async () => {
    await db(sql`update actor set deleted_at = now() where id = ${ada.actor_id}::uuid`)
    expect(await found()).toEqual(['no_keeper', 'no_admin'])
    await db(sql`update actor set deleted_at = null where id = ${ada.actor_id}::uuid`)
    await db(sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where role = 'admin'`)
    expect(await found()).toEqual(['no_admin'])
    await db(sql`update role_grant set expires_at = null where role = 'admin'`)
  })

  it('many keepers', async () => {
    const bob = await test.account({ roles: ['keeper'] })
    expect(await found()).toEqual(['many_keepers'])
    expect((await doctor()).stdout).toContain(
      `There are 2 keepers: ${[ada, bob].map((one) => one.username).join(', ')}.`,
    )
    await test.service.operations.transferKeeper({ actor_id: ada.actor_id }, { via: 'testing' })
    expect(await found()).toEqual([])
  })

  it('an e-mail that a migration found in use', async () => {
    await db(sql`update account set email = 'ς@x.io', email_key = ' ς@x.io' where id = ${ada.id}::uuid`)
    expect(await found()).toEqual(['email_in_use'])
    expect((await doctor()).stdout).toMatch(
      new RegExp(`differ from those of other accounts only in case.*: ${ada.username}\\.`),
    )
    await test.service.operations.setEmail({ account_id: ada.id, email: 'ς@x.io' }, { via: 'testing' })
    expect(await found()).toEqual([])
  })

  it('grants of roles that are not declared, as long as they last', async () => {
    const holder = (role: string) => test.account({ roles: [role] })
    const held = [await holder('teacher'), await holder('guide'), await holder('teacher')] as const
    expect(await found()).toEqual(['orphaned_grants'])
    expect((await doctor()).stdout).toMatch(
      /does not declare: guide, teacher\.\n.* declares in code, which no command reads/,
    )
    const declare = (...names: string[]) =>
      writeFile(
        join(cwd, 'cellkeep.config.json'),
        JSON.stringify({ roles: names.map((name) => ({ name, grant_paths: ['admin'] })) }),
      )
    await declare('teacher')
    expect((await doctor()).stdout).toContain('does not declare: guide.')
    await db(sql`update role_grant set expires_at = now() where role = 'guide'`)
    expect(await found()).toEqual([])
    await declare()
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: held[0].actor_id, role: 'teacher' },
      { via: 'testing' },
    )
    expect(await found()).toEqual(['orphaned_grants'])
    await test.service.operations.deleteAccount({ account_id: held[2].id }, { via: 'testing' })
    expect(await found()).toEqual([])
  })

  it('hashes of an import, and what they cost if that is more than every failed login takes anyway', async () => {
    await db(sql`update account set hash_foreign = true where id = ${ada.id}::uuid`)
    const said = async (ms: number, env?: Environment) => {
      await db(sql`update app_settings set import_floor_ms = ${ms}`)
      return (await doctor(env)).stdout
    }
    expect(await said(10)).toMatch(/Accounts with .*: 1\.\n/)
    expect(await said(900)).toMatch(/: 1\. Because of them, every failed login takes at least 900 ms\.\n/)
    expect(await said(900, { CELLKEEP_LOGIN_FAIL_FLOOR_MS: '0' })).toMatch(/: 1\.\n/)
    await db(sql`update account set hash_foreign = false`)
    await db(sql`update app_settings set import_floor_ms = null`)
    expect(await found()).toEqual([])
  })

  it('links to a provider that is not configured', async () => {
    const issuer = 'https://id.example'
    await db(sql`insert into account_link (account_id, provider, issuer, subject)
      values (${ada.id}::uuid, 'corp', ${issuer}, 'x')`)
    expect(await found()).toEqual(['orphaned_links'])
    const config = { oidc: [{ id: 'corp', issuer, client_id: 'x' }] }
    await writeFile(join(cwd, 'cellkeep.config.json'), JSON.stringify(config))
    expect(await found()).toEqual([])
    await db(sql`delete from account_link`)
  })

  it('a token file that is left over', async () => {
    await writeFile(join(dataDir, 'bootstrap_token'), 'x', { mode: 0o600 })
    expect(await found()).toEqual(['bootstrap_token_left'])
  })

  it('a daemon token file that the server cannot use', async () => {
    const path = join(dataDir, 'daemon')
    const at = { CELLKEEP_DAEMON_TOKEN_FILE: path }
    expect(await found(at)).toEqual(['daemon_token_unusable'])
    await writeFile(path, 'x', { mode: 0o600 })
    expect(await found(at)).toEqual(['daemon_token_unusable'])
    await writeFile(path, `${'x'.repeat(43)}\n`)
    expect(await found(at)).toEqual([])
    await rm(path)
  })

  it('nobody has bootstrapped', async () => {
    const fresh = await ownService()
    const at = (env = {}) => doctor({ CELLKEEP_DATABASE_URL: fresh.databaseUrl, ...env })
    expect((await at()).stdout).toMatch(/^not_bootstrapped\n.*\n.*bootstrap-token reset/)
    expect((await at({ CELLKEEP_BOOTSTRAP: 'disabled' })).stdout).toMatch(
      /^not_bootstrapped\n.*\n {2}→ Run `cellkeep account create --username NAME --keeper`\.$/m,
    )
    await writeFile(join(dataDir, 'bootstrap_token'), 'x', { mode: 0o600 })
    expect((await at()).stdout).toMatch(/^not_bootstrapped\n.*\n.*Use the token in .*bootstrap_token/)
    await fresh.account()
    expect((await at()).stdout).toMatch(/^no_keeper\n.*\n.*account create --username NAME --keeper/)
    await fresh.close()
  })
})

it('passkeys that are off though there is a public URL, and those of another domain', async () => {
  const CELLKEEP_PUBLIC_URL = 'http://localhost:4040'
  expect(await found({ CELLKEEP_PUBLIC_URL })).toEqual([])
  expect(await found({ CELLKEEP_PUBLIC_URL: 'https://192.0.2.1' })).toEqual(['passkeys_off'])
  expect(await found({ CELLKEEP_PUBLIC_URL: 'https://192.0.2.1', CELLKEEP_PASSKEYS: 'false' })).toEqual([])
  await db(sql`
    insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor, rp_id, name)
    values ('key', ${ada.id}::uuid, '', 0, 'single', false, true, false, 'localhost', 'Passkey')`)
  expect(await found({ CELLKEEP_PUBLIC_URL })).toEqual([])
  expect(await found({ CELLKEEP_PUBLIC_URL: 'https://app.example' })).toEqual(['orphaned_passkeys'])
  expect((await doctor()).stdout).toMatch(
    /^orphaned_passkeys \(warning\)\n {2}1 passkey .* no domain.*\n.*CELLKEEP_PUBLIC_URL/m,
  )
  await db(sql`delete from account_passkey`)
})

describe('the audit log', () => {
  it('partitions that are missing, or too many', async () => {
    await db(sql`alter table audit_log detach partition audit_log_0`)
    const { stdout } = await doctor()
    await db(sql`alter table audit_log attach partition audit_log_0 for values from (0) to (20000000)`)
    expect(stdout).toMatch(
      /^partitions_missing\n {2}The audit log has no partition for its next row, number \d+/,
    )
    // On a connection of its own, as this exceeds the service's time limit for a statement.
    const client = new pg.Client(test.databaseUrl)
    await client.connect()
    await client.query('select audit_partition(20000000 + n * 10, 10) from generate_series(0, 200) n')
    expect(await found()).toEqual(['partitions_many'])
    await client.query(`do $$ begin
      for n in 0..200 loop
        execute format('drop table audit_log_%1$s, audit_cell_%1$s', 20000000 + n * 10);
        if n % 50 = 0 then commit; end if;
      end loop;
    end $$`)
    await client.end()
    expect(await found()).toEqual([])
  })

  const loss = (last_at: string) => sql`
    insert into audit_loss (lost_rows, since, last_at, cause)
    values (3, '2026-01-02 03:04:05Z', ${sql.raw(last_at)}, '55P03 locked')`

  it.each([
    ['missing', 'alter function audit_write rename to away', 'alter function away rename to audit_write'],
    ['broken', `alter function audit_insert rename to away`, 'alter function away rename to audit_insert'],
  ])('a function that is %s, of which it says how to get it back', async (_what, damage, repair) => {
    const rows = await test.service.app.db.rows(sql`select from audit_entries()`)
    await db(sql.raw(damage))
    const { stdout } = await doctor()
    await db(sql.raw(repair))
    expect(stdout).toMatch(/^audit_write_broken\n {2}Audit rows cannot be written: .*does not exist/)
    expect(stdout).toContain('migrations/schema.sql')
    expect(await found()).toEqual([])
    expect(await test.service.app.db.rows(sql`select from audit_entries()`)).toEqual(rows)
  })

  it('that another session locks', async () => {
    const other = await rival(test.databaseUrl)
    await other.begin('lock table audit_inbox in access exclusive mode')
    expect(await found()).toEqual(['audit_write_broken'])
    await other.commit()
    await other.close()
    expect(await found()).toEqual([])
  })

  it('rows that were lost, for a week', async () => {
    await db(loss('now()'))
    expect(await found()).toEqual(['audit_rows_lost'])
    expect((await doctor()).stdout).toMatch(
      /Audit rows lost between 2026-01-02T03:04:05Z .*: 3\. .*55P03 locked/,
    )
    await db(sql`delete from audit_loss`)
    await db(loss(`now() - interval '8 days'`))
    expect(await found()).toEqual([])
    await db(sql`delete from audit_loss`)
  })
})

describe('the schema', () => {
  it('pending migrations and drift, each reported alone because nothing else can be read', async () => {
    const old = await ownService()
    const at = { CELLKEEP_DATABASE_URL: old.databaseUrl }
    const run = old.service.app.db.run
    await run(sql`alter table account rename column email_key to elsewhere`)
    expect(await found(at)).toEqual(['schema_drift'])
    expect((await doctor(at)).stdout).toContain('column account.email_key')
    await run(sql`alter table account rename column elsewhere to email_key`)
    await run(sql`alter table account add column more text`)
    expect(await found(at)).toEqual(['not_bootstrapped'])
    await run(sql`delete from schema_migration where name = (
      select max(name) from schema_migration where kind = 'expand')`)
    expect(await found(at)).toEqual(['migration_pending'])
    expect((await doctor(at)).stdout).toMatch(/lacks \d{4}_\w+\.\n {2}→ Run `cellkeep migrate`/)
    await run(sql`update schema_migration set name = '0001_other' where name like '0001%'`)
    expect(await found(at)).toEqual(['migration_name_divergence'])
    await old.close()
  })

  it('a table that somebody has locked, reported alone because other checks would wait for it', async () => {
    const owner = await rival(test.databaseUrl)
    await owner.begin('lock table role_grant in access exclusive mode')
    const lasting = sql`select pid from pg_stat_activity where datname = current_database()
      and state = 'idle in transaction' and clock_timestamp() - xact_start > interval '2 seconds'`
    await expect.poll(() => test.service.app.db.rows(lasting), { timeout: 30_000 }).toHaveLength(1)
    const [{ pid } = { pid: 0 }] = await test.service.app.db.rows<{ pid: number }>(lasting)
    expect(await found()).toEqual(['table_locked'])
    const { stdout } = await doctor()
    const holder = `process ${pid} \\(.*\\), whose transaction began \\d+ s ago`
    expect(stdout).toMatch(new RegExp(`A lock on role_grant is held by the server ${holder}\\.`))
    expect(stdout).toContain(`select pg_terminate_backend(${pid})`)
    // Users without the rights of pg_read_all_stats are told less about the sessions of others.
    const bare = new URL(test.databaseUrl)
    bare.username = 'bare'
    await db(sql`create role bare login`)
    await db(sql`grant usage on schema cellkeep to bare`)
    await db(sql`grant select on all tables in schema cellkeep to bare`)
    const told = await doctor({ CELLKEEP_DATABASE_URL: bare.href })
    const { username } = new URL(test.databaseUrl)
    expect(told.stdout).toContain(`role_grant is held by the server process ${pid} (user ${username}).`)
    await owner.query(`prepare transaction 'it''s half done'`)
    const prepared =
      /by the prepared transaction 'it''s half done' \(user \w+\), prepared \d+ s ago\. .*\n.*, or run `(.*?)`/
    await expect.poll(async () => (await doctor()).stdout, { timeout: 30_000 }).toMatch(prepared)
    await owner.query(prepared.exec((await doctor()).stdout)?.[1] ?? '')
    await owner.close()
    expect(await found()).toEqual([])
  })

  it('no table that is named because somebody waits for one of its rows', async () => {
    const [owner, waiting] = [await rival(test.databaseUrl), await rival(test.databaseUrl)]
    const lock = 'select from account for update'
    await owner.begin(lock)
    const begun = waiting.begin(lock)
    const isLong = sql`select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and clock_timestamp() - xact_start > interval '2 seconds'`
    await expect.poll(() => test.service.app.db.rows(isLong), { timeout: 30_000 }).toHaveLength(1)
    expect(await found()).toEqual([])
    await owner.commit()
    await begun
    await waiting.commit()
    await Promise.all([owner.close(), waiting.close()])
  })

  it('nothing where another session holds the row by which a server is tried out', async () => {
    const owner = await rival(test.databaseUrl)
    await owner.begin('select from cluster for update')
    expect(await found()).toEqual([])
    await owner.commit()
    await owner.close()
  })

  it('no database yet', async () => {
    expect(await found({ CELLKEEP_DATABASE_URL: '' })).toEqual(['no_database'])
  })
})

describe('the configuration', () => {
  it.each([
    [{ CELLKEEP_COOKIE_SECURE: 'false' }, ['cookie_insecure']],
    [{ CELLKEEP_ENV: 'development' }, ['development']],
    [{ CELLKEEP_METRICS_PORT: '9464' }, []],
    [{ CELLKEEP_METRICS_PORT: '9464', CELLKEEP_METRICS_HOST: '10.1.2.3' }, []],
    [{ CELLKEEP_METRICS_PORT: '9464', CELLKEEP_METRICS_HOST: '0.0.0.0' }, ['metrics_exposed']],
    [{ CELLKEEP_PROT: '1' }, ['configuration']],
    [{ CELLKEEP_ALLOWED_ORIGINS: 'https://a.example,http://b.example:*' }, ['origin_without_tls']],
    [{ CELLKEEP_ALLOWED_ORIGINS: 'http://localhost:3000,http://[::1]:1' }, []],
    [{ CELLKEEP_COOKIE_KEYS: 'password'.repeat(4) }, ['cookie_key_weak']],
    [{ CELLKEEP_COOKIE_KEYS: `${key},${'0'.repeat(40)}` }, ['cookie_key_weak']],
  ])('%j', async (env, findings) => {
    expect(await found(env)).toEqual(findings)
  })

  it('what only servers need is a finding, and the rest is looked at', async () => {
    const env = { CELLKEEP_COOKIE_KEYS: undefined, CELLKEEP_HOST: '0.0.0.0' }
    expect(await found(env)).toEqual(['configuration', 'configuration'])
    expect((await doctor(env)).stdout).toMatch(/CELLKEEP_COOKIE_KEYS is required .*`cellkeep keys generate`/)
    await chmod(dataDir, 0o755)
    expect(await found(env)).toEqual(['configuration', 'configuration', 'open_to_others'])
  })

  it('what breaks a rule ends it with 78', async () => {
    expect((await doctor({ CELLKEEP_PORT: 'x' })).code).toBe(78)
  })

  it('so does a declaration that keeps a server from starting', async () => {
    await writeFile(join(cwd, 'cellkeep.config.json'), JSON.stringify({ roles: [{ name: 'editor' }] }))
    const { code, stdout, stderr } = await doctor()
    expect([code, stdout]).toEqual([78, ''])
    expect(stderr).toContain('role "editor" must have a list as grant_paths')
  })

  it('shows no secret', async () => {
    const { stdout } = await doctor({ CELLKEEP_COOKIE_KEYS: 'password'.repeat(4) })
    expect(stdout).not.toContain('password')
  })
})

describe('the data dir', () => {
  const open = ['open_to_others']
  // The mode that is given when something is made is reduced by the umask.
  const made = async (name: string, mode: number, make: (path: string) => Promise<unknown>) => {
    await make(join(dataDir, name))
    await chmod(join(dataDir, name), mode)
  }
  const keyFile = (mode: number) => made('cookie_keys', mode, (path) => writeFile(path, key))
  it.each<[string, () => Promise<unknown>, string[]]>([
    ['itself', () => chmod(dataDir, 0o755), open],
    ['a file for all to read', () => keyFile(0o644), open],
    ['a database for the group', () => made('db', 0o750, (path) => mkdir(path)), open],
    ['a file of its own', () => keyFile(0o600), []],
    ['links to libraries', () => made('lib', 0o755, (path) => mkdir(path)), []],
    ['a link', () => symlink('/tmp', join(dataDir, 'socket')), []],
    ['nothing there yet', () => rm(dataDir, { recursive: true }), []],
  ])('%s', async (_what, prepare, findings) => {
    await prepare()
    expect(await found()).toEqual(findings)
  })

  it('that others may write keeps the embedded database from being opened', async () => {
    const user = await databaseUser('')
    await mkdir(join(dataDir, 'db'), { mode: 0o700 })
    if (user) await chown(join(dataDir, 'db'), user.uid, user.gid)
    await chmod(dataDir, 0o777)
    expect(await found({ CELLKEEP_DATABASE_URL: '' })).toEqual(['data_dir_unsafe'])
  })

  it.skipIf(process.getuid?.() !== 0)('of another user, or with his token', async () => {
    const fresh = await ownService()
    const env = { CELLKEEP_DATABASE_URL: fresh.databaseUrl }
    await writeFile(join(dataDir, 'bootstrap_token'), 'x', { mode: 0o600 })
    await chown(join(dataDir, 'bootstrap_token'), 65_534, 65_534)
    expect(await found(env)).toEqual(['bootstrap_token_unusable', 'not_bootstrapped'])
    await chown(dataDir, 65_534, 65_534)
    expect(await found(env)).toEqual(['data_dir_unsafe', 'bootstrap_token_unusable', 'not_bootstrapped'])
    await fresh.close()
  })

  it.skipIf(process.getuid?.() !== 0)('with a database of the user whom daemons share', async () => {
    const path = join(dataDir, 'db')
    await mkdir(path, { mode: 0o700 })
    const files = { data_dir: dataDir, cookie_keys: [key], database_url: null }
    const findings = () => fileFindings({ ...files, daemon_token_file: null, disk_reserve: null })
    await chown(path, 65_534, 65_534)
    expect((await findings()).map(({ finding }) => finding)).toEqual(['database_user_shared'])
    await chown(path, 4321, 4321)
    expect(await findings()).toEqual([])
  })

  it('may be passed, and no more, where root made it for the database’s own user', async () => {
    await chmod(dataDir, 0o711)
    expect(await found()).toEqual(process.getuid?.() === 0 ? [] : open)
    await chmod(dataDir, 0o733)
    expect(await found()).toEqual(open)
  })
})

it('with --deep reads every row, and names those that nothing of ours writes', async () => {
  const names = async (...args: string[]) =>
    (await doctor({}, [...args, '--json'])).stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .filter(({ check }) => check)
      .map(({ finding }) => finding)
  expect(await names('--deep')).toEqual([])
  const { cell } = await ada.client.cell_create({ data: {} })
  await db(sql`
    insert into cell_grant (cell_id, level, actor_id, cell_created_at)
    select id, 'viewer', created_by, created_at from cell where id = ${cell.id}::uuid`)
  await db(sql`insert into cell (data, data_bytes) select '{}', 2 from generate_series(1, 25000)`)
  await db(sql`select setval(pg_get_serial_sequence('audit_inbox', 'written'), 1, false)`)
  expect(await names()).toEqual([])
  expect(await names('--deep')).toEqual(['owner_granted', 'identity_behind'])
  expect((await doctor({}, ['--deep'])).stdout).toMatch(/owner_granted\n {2}1 rows of cell_grant share/)
  expect(await doctor({}, ['--sample', '5'])).toMatchObject({ code: 2 })
  expect(await doctor({}, ['--deep', '--sample', '0'])).toMatchObject({ code: 2 })
  await doctor({}, ['--deep', '--sample', '50'])
})

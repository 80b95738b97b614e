import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import type pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { inFormat1, target } from '../../test/helpers/backup-files.ts'
import { sql } from '../db/db.ts'
import { migrate } from '../db/migration/migrate.ts'
import { migrationNames } from '../db/migration/steps.ts'
import { testService } from '../testing/index.ts'
import { writeBackup } from './backup.ts'
import { backedUpTables } from './format.ts'
import { restoreBackup } from './restore.ts'

const source = (): pg.ClientConfig => ({ connectionString: test.databaseUrl })
const awkward = 'quotes " \' \\ $1 \u2028 \u0001 \t\n# {"end":true} é 🙂'

const dir = await mkdtemp(join(tmpdir(), 'ck-bak-'))
const test = await testService({ bootstrap: 'live', bootstrap_token_path: join(dir, 'token') })
const { operations } = test.service
const by = { via: 'testing' }
const { actor: keeper } = await operations.createAccount(
  { username: 'keeper', password: 'a long password', keeper: true },
  by,
)
const ada = await test.account({ username: 'ada', email: 'é@x.io', roles: ['admin'] })
const { cell } = await ada.client.cell_create({
  data: { text: awkward, number: 12345678901234567890n.toString(), nested: [null, { '': [] }] },
  visibility: 'public',
})
await test.cellGrant(cell.id, 'viewer', { actor_id: keeper.id })
await operations.createInvite({ email: 'b@x.io' }, by)
await operations.setSettings({ open_signup: true }, by)
await ada.client.account_token_create({ scope: { kind: 'read_only' }, lifetime: { kind: 'eternal' } })
await test.service.call(
  'cell_create',
  { data: { text: awkward } },
  { headers: { cookie: ada.cookie }, idempotency_key: 'x'.repeat(16) },
)
const { db } = test.service.app
// A number that no double holds, the two tables that reference each other, audit rows with and without a number.
await db.run(sql`update cell set data = jsonb_set(data, '{number}', '12345678901234567890.123456789')`)
await db.run(sql`
  with offer as (
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, message, expires_at, accepted_at)
    values (${ada.actor_id}::uuid, ${ada.id}::uuid, ${ada.id}::uuid, 'admin', ${awkward}, now(), now())
    returning offer_id
  )
  update role_grant set source_offer_id = offer_id from offer where actor_id = ${ada.actor_id}::uuid`)
await db.run(sql`
  update role_grant_offer set resulting_role_grant_id = role_grant.id from role_grant
  where source_offer_id = offer_id`)
await db.run(sql`insert into role_scope_destroyed values ('team', ${ada.id}::uuid)`)
await db.run(sql`insert into account_address (account_id, address) values (${ada.id}::uuid, '203.0.113.7')`)
await db.run(sql`
  insert into account_ticket (purpose, token_hash, account_id, delivery, expires_at)
  values ('password_reset', 'hash', ${ada.id}::uuid, 'revealed', now())`)
await db.run(sql`
  insert into message_outbox (purpose, account_id, to_address, locale, expires_at)
  values ('notice', ${ada.id}::uuid, 'é@x.io', 'en', now())`)
await db.run(
  sql`insert into account_totp (account_id, secret_sealed) values (${ada.id}::uuid, 'v1.key.iv.text')`,
)
await db.run(sql`insert into account_recovery_code values (${ada.id}::uuid, 'hash')`)
await db.run(sql`
  insert into account_passkey
    (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor, rp_id, name)
  values ('key', ${ada.id}::uuid, '\\x00ff', 1, 'single', false, true, true, 'x.io', ${awkward})`)
await db.run(sql`
  insert into account_link (account_id, provider, issuer, subject)
  values (${ada.id}::uuid, 'staff', 'https://x.io', ${awkward})`)
await db.run(sql`insert into username_reservation values ('lovelace', ${ada.id}::uuid)`)
await db.run(sql`insert into account_import values ('users', '1', ${ada.id}::uuid)`)
await db.run(sql`select audit_number(5)`)
const whole = join(dir, 'whole')
await writeBackup(source(), { to: whole, version: '1.2.3' })
afterAll(async () => {
  await test.close()
  await rm(dir, { recursive: true })
})

/** Every row of every table, as text. */
async function content(client: Pick<pg.Client, 'query'>): Promise<Record<string, unknown[]>> {
  const tables: Record<string, unknown[]> = {}
  for (const table of backedUpTables()) {
    const { rows } = await client.query(`select t::text as row from ${table} t order by 1`)
    tables[table] = rows.map(({ row }) => row)
  }
  return tables
}

async function sourceContent(): Promise<Record<string, unknown[]>> {
  const { db } = test.service.app
  return await content({
    query: async (text: string) => ({ rows: await db.rows(sql`${sql.raw(text)}`) }),
  } as unknown as pg.Client)
}

const lines = async (file: string) =>
  gunzipSync(await readFile(file))
    .toString('utf8')
    .split('\n')
async function changed(name: string, change: (text: string[]) => string[]): Promise<string> {
  const file = join(dir, name)
  await writeFile(file, gzipSync(change(await lines(whole)).join('\n')))
  return file
}

/** Leaves out what a restore changes. */
const withoutLinks = ({ account_ticket, message_outbox, ...rest }: Awaited<ReturnType<typeof content>>) => ({
  ...rest,
  links: [account_ticket?.length, message_outbox?.length],
})

describe('restoreBackup', () => {
  it('ends every link, and sends no message that waited', async () => {
    const to = await target(migratedDatabase)
    await restoreBackup(to.connection, whole)
    const client = await to.open()
    const { rows } = await client.query(`
      select (select count(*) from account_ticket where voided_at is null)::int as open,
        (select count(*) from account_ticket)::int as tickets, state, error, to_address, link_sealed
      from message_outbox`)
    expect(rows).toEqual([
      { open: 0, tickets: 1, state: 'failed', error: 'expired', to_address: null, link_sealed: null },
    ])
  })

  it('brings every row of every table back as it was, into an empty database', async () => {
    const to = await target()
    const done = await restoreBackup(to.connection, whole)
    expect(done).toMatchObject({ applied: [], created_at: expect.stringMatching(/^\d{4}-.*Z$/) })
    const client = await to.open()
    const [before, after] = [await sourceContent(), await content(client)]
    expect(withoutLinks(after)).toEqual(withoutLinks(before))
    // As few tables as possible are equal only because both are empty.
    const empty = Object.keys(before).filter((table) => before[table]?.length === 0)
    expect(empty.sort(), 'give a new table a row at the top of this file').toEqual([
      'cell_field',
      'cell_item',
    ])
    expect(done.rows).toBe(Object.values(before).flat().length)
  })

  it('reads the format before checksums', async () => {
    const to = await target()
    await restoreBackup(to.connection, await changed('format-1', inFormat1))
    expect(withoutLinks(await content(await to.open()))).toEqual(withoutLinks(await sourceContent()))
  })

  it('leaves the same schema, references and numbering behind', async () => {
    const [to, fresh] = [await target(), await target(migratedDatabase)]
    await restoreBackup(to.connection, whole)
    const catalogue = `
      select conname, pg_get_constraintdef(oid) as text, convalidated from pg_constraint
      where connamespace = current_schema()::regnamespace order by 1, 2`
    const [restored, made] = [await to.open(), await fresh.open()]
    expect((await restored.query(catalogue)).rows).toEqual((await made.query(catalogue)).rows)
    const { rows } = await restored.query('select max(written)::int as last from audit_entries()')
    await restored.query(`select audit_insert('[{"event_type":"login","outcome":"success"}]')`)
    const next = await restored.query('select max(written)::int as last from audit_entries()')
    expect(next.rows[0].last).toBe(rows[0].last + 1)
  })

  it('continues the numbering also where a database quotes all names', async () => {
    const [from, to] = [await target(migratedDatabase), await target()]
    const writer = await from.open()
    const client = await to.open()
    await client.query(`alter database ${to.connection.database} set quote_all_identifiers = on`)
    await writer.query(`select audit_insert('[{"event_type":"login","outcome":"success"}]')`)
    await writer.query('select audit_number()')
    const file = join(dir, 'numbered')
    await writeBackup(from.connection, { to: file, version: '1.2.3' })
    await restoreBackup(to.connection, file)
    await client.query(`select audit_insert('[{"event_type":"login","outcome":"success"}]')`)
    const { rows } = await client.query('select count(distinct written)::int as n from audit_entries()')
    expect(rows).toEqual([{ n: 2 }])
  })

  it('accepts a migrated database without accounts, and replaces its seeded rows and audit rows', async () => {
    const to = await target(migratedDatabase)
    const client = await to.open()
    await client.query(`select audit_insert('[{"event_type":"bootstrap","outcome":"failure"}]')`)
    await restoreBackup(to.connection, whole)
    expect(withoutLinks(await content(client))).toEqual(withoutLinks(await sourceContent()))
  })

  it.each([
    ['accounts', `insert into account (username, password_hash) values ('x-y', 'x')`],
    ['cells', `insert into cell (data, data_bytes) values ('{}', 2)`],
  ])('refuses a database that holds %s, and changes nothing', async (_what, insert) => {
    const to = await target(migratedDatabase)
    const client = await to.open()
    await client.query(insert)
    const before = await content(client)
    await expect(restoreBackup(to.connection, whole)).rejects.toMatchObject({
      reason: 'database_not_empty',
      exitCode: 1,
    })
    expect(await content(client)).toEqual(before)
  })

  it('refuses a database that a node serves, and takes one whose nodes are gone', async () => {
    const to = await target(migratedDatabase)
    const client = await to.open()
    await client.query(`
      insert into node (id, name, version, known_step, pid, started_at, seen_at, state)
      values ('n1', 'web-1', '0.1.0', '0001', 1, now(), now(), 'ready')`)
    const before = await content(client)
    await expect(restoreBackup(to.connection, whole)).rejects.toMatchObject({
      reason: 'database_in_use',
      message: expect.stringContaining('served by web-1. Stop every node'),
      exitCode: 1,
    })
    expect(await content(client)).toEqual(before)
    await client.query(`update node set seen_at = now() - interval '15 seconds'`)
    await restoreBackup(to.connection, whole)
    expect(withoutLinks(await content(client))).toEqual(withoutLinks(await sourceContent()))
  })

  it('applies the migrations that are newer than the backup', async () => {
    const [last, ...earlier] = migrationNames().reverse()
    const old = await target()
    const names = earlier.reverse()
    await migrate(old.connection, { only: names })
    const client = await old.open()
    await client.query(`insert into account (username, password_hash) values ('of-old', 'x')`)
    const file = join(dir, 'old')
    await writeBackup(old.connection, { to: file, version: '0.0.1' })
    const to = await target()
    expect(await restoreBackup(to.connection, file)).toMatchObject({ applied: [last] })
    const restored = await to.open()
    expect((await restored.query('select username from account')).rows).toEqual([{ username: 'of-old' }])
    expect((await restored.query('select name from schema_migration order by name')).rows).toHaveLength(
      names.length + 1,
    )

    // If the database is ahead of the backup, those migrations would never run over the loaded rows.
    const ahead = await target(migratedDatabase)
    await expect(restoreBackup(ahead.connection, file)).rejects.toMatchObject({
      reason: 'database_newer_than_backup',
    })
  })

  it.each<[string, (text: string[]) => string[], string]>([
    [
      'of a newer version',
      (text) => text.map((line) => line.replace('"0001_accounts"', '"0000_unknown"')),
      'backup_of_newer_version',
    ],
    ['without its end', (text) => text.slice(0, -2), 'backup_damaged'],
    ['without a row', (text) => text.filter((line) => !line.includes('"username":"ada"')), 'backup_damaged'],
    [
      'with a table that does not exist',
      (text) => text.map((line) => line.replace('"table":"cell"', '"table":"pg_class"')),
      'backup_damaged',
    ],
    [
      'with a column that does not exist',
      (text) => text.map((line) => line.replace('"columns":["id"', '"columns":["id\\"; --"')),
      'backup_damaged',
    ],
    ['that is another file', () => ['{}'], 'backup_unreadable'],
    ['that is empty', () => [], 'backup_unreadable'],
  ])('refuses a file %s, and nothing is restored', async (what, change, reason) => {
    const to = await target(migratedDatabase)
    const file = await changed(what.replaceAll(' ', '-'), change)
    await expect(restoreBackup(to.connection, file)).rejects.toMatchObject({ reason, exitCode: 1 })
    const client = await to.open()
    const { rows } = await client.query(`select to_regclass('account') as made`)
    if (rows[0].made) expect((await client.query('select 1 from account')).rows).toEqual([])
  })

  it.each([
    ['53100', 'storage_full'],
    ['53200', 'database_failed'],
    ['58030', 'database_failed'],
    ['57014', 'database_failed'],
    ['57P01', 'db_unreachable'],
  ])('a database that fails with %s does not call the file damaged', async (code, reason) => {
    const to = await target(migratedDatabase)
    const client = await to.open()
    await client.query(`
      create function failing() returns trigger language plpgsql as
        $$ begin raise exception 'a fault of the server' using errcode = '${code}'; end $$;
      create trigger failing before insert on cell execute function failing()`)
    await expect(restoreBackup(to.connection, whole)).rejects.toMatchObject({
      reason,
      message: expect.stringMatching(/a fault of the server\. Nothing was restored\. /),
      exitCode: 3,
    })
    expect((await client.query('select from account')).rowCount).toBe(0)
  })

  it('refuses a file that is cut, not zipped, or not there', async () => {
    const to = await target()
    const bytes = await readFile(whole)
    await writeFile(join(dir, 'cut'), bytes.subarray(0, bytes.length - 20))
    await writeFile(join(dir, 'plain'), gunzipSync(bytes))
    for (const [name, why] of [
      ['cut', 'cannot be read: unexpected end of file'],
      ['plain', 'is not a gzip file, so it is not a backup of Cellkeep'],
      ['none', 'cannot be read: ENOENT'],
    ] as const)
      await expect(restoreBackup(to.connection, join(dir, name))).rejects.toMatchObject({
        reason: 'backup_unreadable',
        message: expect.stringContaining(why),
      })
  })
})

describe('writeBackup', () => {
  it('is readable by its owner only, names the version that made it, and holds nothing twice', async () => {
    expect((await stat(whole)).mode & 0o777).toBe(0o600)
    const [first = '', ...rest] = await lines(whole)
    expect(JSON.parse(first.slice(1))).toMatchObject({
      cellkeep_backup: 2,
      version: '1.2.3',
      migrations: migrationNames(),
      timeline: '00000001',
      lsn: expect.stringMatching(/^[0-9A-F]+\/[0-9A-F]+$/),
      audit_seq: 5,
    })
    expect(rest.filter((line) => line.startsWith('#{"table"'))).toHaveLength(backedUpTables().length)
  })

  it('writes to a stream, and leaves it open', async () => {
    const stream = new PassThrough()
    const taken = stream.take(1e9).toArray()
    const { bytes, rows } = await writeBackup(source(), { to: stream, version: '1' })
    expect(stream.writableEnded).toBe(false)
    stream.end()
    const text = Buffer.concat(await taken)
    expect(text.length).toBe(bytes)
    expect(gunzipSync(text).toString('utf8')).toContain(`#{"end":true,"rows":${rows},"sha256"`)
  })

  it('waits for a slow reader, table after table, and long rows arrive whole', async () => {
    const full = await target(migratedDatabase)
    const client = await full.open()
    const text = `array_to_string(array(select md5((n * i)::text) from generate_series(1, case n when 7 then 6000 else 20 end) i), '')`
    await client.query(`
      insert into cell (data, data_bytes)
      select data, octet_length(data::text)
      from generate_series(1, 3000) n, lateral (select jsonb_build_object('text', ${text})) made (data)`)
    const parts: Buffer[] = []
    const slow = new Writable({
      highWaterMark: 1,
      write: (part: Buffer, _encoding, done) => {
        parts.push(part)
        setTimeout(done, 1)
      },
    })
    const { rows } = await writeBackup(full.connection, { to: slow, version: '1' })
    const file = join(dir, 'slow')
    await writeFile(file, Buffer.concat(parts))
    const to = await target(migratedDatabase)
    expect(await restoreBackup(to.connection, file)).toMatchObject({ rows })
    const sum = `select md5(string_agg(id || data::text, '' order by id)) as sum, count(*)::int as rows from cell`
    const restored = await (await to.open()).query(sum)
    expect(restored.rows).toEqual((await client.query(sum)).rows)
  })

  it('reads no more a second than it may, and ends at once in a pause', async () => {
    const fast = new PassThrough()
    const taken = fast.take(1e9).toArray()
    await writeBackup(source(), { to: fast, version: '1' })
    fast.end()
    const size = gunzipSync(Buffer.concat(await taken)).length
    const stream = () => new PassThrough().resume()
    const begun = performance.now()
    await writeBackup(source(), { to: stream(), version: '1', maxRate: size * 4 })
    expect(performance.now() - begun).toBeGreaterThan(200)

    const interrupt = new AbortController()
    const paced = stream().once('data', () => interrupt.abort())
    const hours = { to: paced, version: '1', maxRate: size / 36_000, interrupt: interrupt.signal }
    await expect(writeBackup(source(), hours)).rejects.toThrow()
  })

  it('overwrites nothing, and leaves no file when it fails', async () => {
    const file = join(dir, 'mine')
    await writeFile(file, 'mine')
    await expect(writeBackup(source(), { to: file, version: '1' })).rejects.toMatchObject({
      reason: 'backup_unwritable',
    })
    expect(await readFile(file, 'utf8')).toBe('mine')
    const nowhere = join(dir, 'no', 'where')
    await expect(writeBackup(source(), { to: nowhere, version: '1' })).rejects.toMatchObject({
      reason: 'backup_unwritable',
    })

    const closed = new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) })
    closed.on('error', () => {})
    await expect(writeBackup(source(), { to: closed, version: '1' })).rejects.toMatchObject({
      reason: 'backup_unwritable',
      message: 'The output cannot be written: write EPIPE.',
    })

    const broken = await target(migratedDatabase)
    const client = await broken.open()
    await client.query('alter table cell rename to elsewhere')
    await client.query(`create view cell as select id, 1 / (visibility = 'x')::int as bad from elsewhere`)
    await client.query(`insert into elsewhere (data, data_bytes) values ('{}', 2)`)
    const half = join(dir, 'half')
    await expect(writeBackup(broken.connection, { to: half, version: '1' })).rejects.toThrow(
      'division by zero',
    )
    await expect(stat(half)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('is one snapshot, whatever is written meanwhile', async () => {
    const before = await sourceContent()
    const file = join(dir, 'moment')
    let isDone = false
    const backup = writeBackup(source(), { to: file, version: '1' }).finally(() => {
      isDone = true
    })
    while (!isDone) await ada.client.cell_create({ data: {} })
    await backup
    const to = await target(migratedDatabase)
    await restoreBackup(to.connection, file)
    const client = await to.open()
    // Each cell was committed together with its audit row.
    const { rows } = await client.query(`
      select (select count(*) from cell)::int as cells,
        (select count(*) from audit_entries() where event_type = 'cell_create')::int as events`)
    expect(rows[0].cells).toBe(rows[0].events)
    expect(rows[0].cells).toBeGreaterThanOrEqual((before.cell ?? []).length)
  })
})

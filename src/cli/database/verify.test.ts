import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { emptyDatabase, migratedDatabase } from '../../../test/fresh-database.ts'
import { linesOfBackup, resealed, rowOf, writeLines } from '../../../test/helpers/backup-files.ts'
import { bootstrapTest } from '../../../test/helpers/bootstrap.ts'
import { capturedLog } from '../../../test/helpers/captured-log.ts'
import { doEverything } from '../../../test/helpers/everything.ts'
import { writeBackup } from '../../backup/backup.ts'
import { sql } from '../../db/db.ts'
import { verifyBackup } from './verify.ts'

const dir = await mkdtemp(join(tmpdir(), 'ck-ver-'))
const test = await doEverything(bootstrapTest())
const { db } = test.service.app
const [owner, reader] = [
  await test.account({ username: 'owner' }),
  await test.account({ username: 'reader' }),
]
const { cell: parent } = await owner.client.cell_create({ data: { label: 'parent' } })
const { cell: child } = await owner.client.cell_create({ data: { label: 'child' } })
await owner.client.cell_field_set({ source_id: parent.id, name: 'of', target_id: child.id })
await owner.client.cell_update({ cell_id: parent.id, data: { label: 'changed' } })
await test.cellGrant(child.id, 'viewer', { actor_id: reader.actor_id })
await owner.client.cell_item_insert({ parent_id: parent.id, position: 'a', child_id: child.id })
await owner.client.account_token_create({ scope: { kind: 'read_only' }, lifetime: { kind: 'eternal' } })
await db.run(sql`select audit_number()`)
const whole = join(dir, 'whole')
await writeBackup({ connectionString: test.databaseUrl, schema: 'cellkeep' }, { to: whole, version: '1.2.3' })
const lines = await linesOfBackup(whole)
afterAll(async () => {
  await test.close()
  await rm(dir, { recursive: true })
})

/** By default in a migrated database, which takes most of the time to make from an empty one. */
async function findings(file: string, make = migratedDatabase): Promise<string[]> {
  const to = await make()
  try {
    const verified = await verifyBackup(to.connection, file, { log: capturedLog().log })
    for (const { what, remedy } of verified.findings)
      expect(`${what} ${remedy}`).not.toMatch(/secret_svc|argon2id/)
    return verified.findings.map(({ check, finding }) => `${check} ${finding}`)
  } finally {
    await to.drop()
  }
}

it('a backup of everything that the service can do is good', async () => {
  expect(await findings(whole, emptyDatabase)).toEqual([])
})

/** Replaces each row of a table by what `of` returns for it, or removes it. */
const rows =
  (table: string, of: (row: Record<string, never>) => object | undefined) =>
  (all: string[]): string[] => {
    const from = all.findIndex((line) => line.startsWith(`#{"table":"${table}"`)) + 1
    const to = all.findIndex((line) => line.startsWith(`#{"table_end":"${table}"`))
    const kept = all.slice(from, to).flatMap((line) => JSON.stringify(of(JSON.parse(line))) ?? [])
    return all.toSpliced(from, to - from, ...kept)
  }
const more = (table: string, row: object) => (all: string[]) =>
  all.toSpliced(
    all.findIndex((line) => line.startsWith(`#{"table_end":"${table}"`)),
    0,
    JSON.stringify(row),
  )
const first = (table: string) =>
  JSON.parse(lines[lines.findIndex((line) => line.startsWith(`#{"table":"${table}"`)) + 1] as string)

it.each<[string, (all: string[]) => string[], string[]]>([
  [
    'a number given twice',
    more('audit_log', { ...first('audit_log'), id: parent.id, written: 1e6 }),
    ['V3 constraint_broken', 'V8 audit_seq_twice'],
  ],
  [
    'an edge to a cell that is gone',
    rows('cell', (row) => (row.id === child.id ? undefined : row)),
    ['V3 constraint_broken', 'V7 dangling_field', 'V7 dangling_grant'],
  ],
  [
    'a grant to the owner',
    rows('cell_grant', (row) => ({
      ...row,
      actor_id: row.cell_id === child.id ? owner.actor_id : row.actor_id,
    })),
    ['V7 owner_granted'],
  ],
  [
    'a second keeper',
    more('role_grant', {
      ...first('role_grant'),
      id: parent.id,
      actor_id: owner.actor_id,
      role: 'keeper',
      scope_kind: null,
      scope_id: null,
      revoked_at: null,
      revoked_reason: null,
      closed_at: null,
      expires_at: null,
      source_offer_id: null,
    }),
    ['V5 many_keepers'],
  ],
  [
    'a place in a timeline missing',
    rows('audit_cell', (row) => (row.cell_id === parent.id ? undefined : row)),
    ['V8 audit_mapping_missing'],
  ],
  [
    'a position behind its log',
    rowOf('audit_position', (row) => ({ ...row, seq: 3 })),
    ['V8 audit_beyond_position'],
  ],
  [
    'the secret of a token in metadata',
    rowOf('audit_log', (row) => ({ ...row, metadata: { note: `secret_svc_token_${'x'.repeat(43)}` } })),
    ['V9 cleartext_token'],
  ],
  [
    'what is wrong in several tables at once',
    (all) =>
      [
        rowOf('account', (row) => ({ ...row, username: 'Ada', password_hash: 'sesame' })),
        rows('app_settings', () => undefined),
        rows('role_grant', (row) => (row.role === 'keeper' ? undefined : row)),
        rows('cell_grant', (row) => ({ ...row, cell_created_at: '2020-01-01T00:00:00Z' })),
      ].reduce((changed, plant) => plant(changed), all),
    [
      'V3 constraint_broken',
      'V4 not_single',
      'V4 username_form',
      'V5 no_keeper',
      'V7 grant_order_wrong',
      'V10 password_hash_unreadable',
    ],
  ],
  [
    'rows that the schema allows, but no rule',
    (all) =>
      [
        rowOf('account', (row) => ({
          ...row,
          deleted_at: '2020-01-01T00:00:00Z',
          email: 'a@b.io',
          email_key: 'c@d.io',
        })),
        ...['api_token', 'account_ticket'].map((table) =>
          rows(table, (row) => ({ ...row, token_hash: 'x' })),
        ),
        more('account_recovery_code', { account_id: owner.id, code_hash: 'x' }),
        ...['auth_session', 'api_token'].map((table) =>
          rows(table, (row) => ({ ...row, account_id: first('account').id })),
        ),
        rows('cell', (row) => ({ ...row, data: { summary: 'x'.repeat(100_000) } })),
        rows('cell_item', (row) => ({ ...row, child_id: owner.id })),
        rowOf('audit_log', (row) => ({
          ...row,
          target_actor_id: owner.actor_id,
          target_account_id: reader.id,
        })),
        rows('role_grant', (row) => ({ ...row, role: row.source_offer_id ? 'somebody' : row.role })),
      ].reduce((changed, plant) => plant(changed), all),
    [
      'V4 email_key_wrong',
      'V6 grant_source_differs',
      'V6 offer_result_differs',
      'V7 cell_text_limits',
      'V7 dangling_item',
      'V8 audit_pair_mixed',
      'V9 session_of_deleted',
      'V9 token_of_deleted',
      'V9 token_hash_form',
      'V9 ticket_hash_form',
      'V9 code_hash_form',
    ],
  ],
])('finds %s, although counts and checksums fit', async (what, plant, names) => {
  const file = join(dir, what.replaceAll(' ', '-'))
  await writeLines(file, resealed(plant(lines)))
  const found = await findings(file)
  for (const name of names) expect(found.join('\n')).toContain(name)
})

it.each<[string, (bytes: Buffer) => Buffer | Promise<Buffer>]>([
  ['a byte changed', (bytes) => bytes.fill((bytes[2000] as number) ^ 1, 2000, 2001)],
  [
    'a letter changed inside',
    (bytes) => gzipSync(gunzipSync(bytes).toString('utf8').replace('"owner"', '"ownor"')),
  ],
  ['its end cut off', (bytes) => bytes.subarray(0, bytes.length - 500)],
  [
    'a row left out and its counts put right',
    (bytes) => {
      const all = gunzipSync(bytes).toString('utf8').split('\n').slice(0, -1)
      const at = all.findIndex((line) => line.includes('"username":"owner"'))
      const short = resealed(all.toSpliced(at, 1))
      const sums = all
        .filter((line) => /^#\{"(table_)?end"/.test(line))
        .map((line) => /"sha256":"(\w+)"/.exec(line)?.[1])
      let nth = 0
      const text = short.map((line) =>
        /^#\{"(table_)?end"/.test(line) ? line.replace(/"sha256":"\w+"/, `"sha256":"${sums[nth++]}"`) : line,
      )
      return gzipSync(text.map((line) => `${line}\n`).join(''))
    },
  ],
])('finds %s', async (what, change) => {
  const file = join(dir, what.replaceAll(' ', '-'))
  await writeFile(file, await change(Buffer.from(await readFile(whole))))
  expect(await findings(file)).toEqual([expect.stringMatching(/^V1 backup_(damaged|unreadable)$/)])
})

it('a disk that is full when the constraints are checked is no finding', async () => {
  const to = await migratedDatabase()
  try {
    const client = await to.open()
    await client.query(`
      create function full_disk() returns event_trigger language plpgsql as
        $$ begin raise exception 'no space left' using errcode = '53100'; end $$;
      create event trigger full_disk on ddl_command_end when tag in ('CREATE INDEX') execute function full_disk()`)
    const verified = verifyBackup(to.connection, whole, { log: capturedLog().log })
    await expect(verified).rejects.toMatchObject({ reason: 'storage_full', exitCode: 3 })
  } finally {
    await to.drop()
  }
})

it('a database that is not empty is no finding', async () => {
  const verified = verifyBackup({ connectionString: test.databaseUrl }, whole, { log: capturedLog().log })
  await expect(verified).rejects.toMatchObject({ reason: 'database_not_empty', exitCode: 3 })
})

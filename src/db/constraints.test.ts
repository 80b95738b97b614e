import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'

const database = await migratedDatabase()
const client = await database.open()
await client.query(`
  insert into account (id, username, password_hash) values ('${id(1)}', 'holder', 'x');
  insert into actor (id, account_id, name, name_key) values ('${id(2)}', '${id(1)}', '', '');
  insert into cell (id, data, data_bytes) values ('${id(3)}', '{}', 2)`)
afterAll(() => database.drop())

function id(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}
const account = `'${id(1)}'`
const actor = `'${id(2)}'`
const theCell = `'${id(3)}'`

const insert = (table: string, columns: string, ...rows: string[]) =>
  `insert into ${table} (${columns}) values ${rows.map((values) => `(${values})`).join(', ')}`
const user = (columns: string, ...rows: string[]) =>
  insert('account', `password_hash, username, ${columns}`, ...rows)
const cell = (columns: string, ...rows: string[]) =>
  insert('cell', `data_bytes, data, ${columns}`, ...rows.map((values) => `2, '{}', ${values}`))
const cellData = (data: string, bytes = 2) => insert('cell', 'data, data_bytes', `${data}, ${bytes}`)
const cellGrant = (columns: string, ...rows: string[]) =>
  insert(
    'cell_grant',
    `cell_id, cell_created_at, level, ${columns}`,
    ...rows.map((values) => `${theCell}, now(), 'viewer', ${values}`),
  )
const field = (name: string) =>
  insert('cell_field', 'source_id, name, target_id', `${theCell}, ${name}, ${theCell}`)
const item = (position: string) =>
  insert('cell_item', 'parent_id, position, child_id', `${theCell}, ${position}, ${theCell}`)
const roleGrant = (columns: string, ...rows: string[]) =>
  insert('role_grant', `actor_id, role, ${columns}`, ...rows.map((values) => `${actor}, 'admin', ${values}`))
const offer = (columns: string, ...rows: string[]) =>
  insert(
    'role_grant_offer',
    `from_actor_id, from_account_id, to_account_id, role, expires_at, ${columns}`,
    ...rows.map((values) => `${actor}, ${account}, ${account}, 'admin', now(), ${values}`),
  )
const audit = (columns: string, ...rows: string[]) =>
  insert('audit_inbox', `event_type, outcome, ${columns}`, ...rows)

test.each([
  ['a second lock row', 'bootstrap_lock_single', insert('bootstrap_lock', 'id', '2')],
  ['the lock row again', 'bootstrap_lock_pkey', insert('bootstrap_lock', 'id', '1')],
  ['a second audit position', 'audit_position_single', insert('audit_position', 'id', '2')],
  ['a mixed-case username', 'account_username_lower', user('email', `'x', 'Ab', null`)],
  ['an email without its key', 'account_email_folded', user('email', `'x', 'abc', 'a@b.c'`)],
  [
    'two emails differing in case',
    'account_email_key',
    user('email, email_key', `'x', 'aaa', 'A@b.c', 'a@b.c'`, `'x', 'bbb', 'a@b.c', 'a@b.c'`),
  ],
  [
    'the username of a deleted account',
    'account_username_key',
    user('deleted_at', `'x', 'gone', now()`, `'x', 'gone', null`),
  ],
  [
    'a session id of 63 characters',
    'auth_session_id_form',
    insert('auth_session', 'id, account_id, expires_at', `repeat('a', 63), ${account}, now()`),
  ],
  [
    'a session id in upper case',
    'auth_session_id_form',
    insert('auth_session', 'id, account_id, expires_at', `repeat('A', 64), ${account}, now()`),
  ],
  [
    'a token scope that is no object',
    'api_token_scope_object',
    insert('api_token', 'id, account_id, name, token_hash, scope', `'tok_x', ${account}, '', '', '[]'`),
  ],
  ['a path of another live cell', 'cell_path', cell('path', `'/taken'`, `'/taken'`)],
  ['an empty path', 'cell_path_length', cell('path', `''`)],
  ['a path of 257', 'cell_path_length', cell('path', `repeat('é', 257)`)],
  ['an empty kind', 'cell_kind_length', cell('kind', `''`)],
  ['a kind of 129', 'cell_kind_length', cell('kind', `repeat('é', 129)`)],
  ['another visibility', 'cell_visibility', cell('visibility', `'shared'`)],
  ['version 0', 'cell_version', cell('version', '0')],
  [
    'a change before the creation',
    'cell_updated_after_created',
    cell('updated_at', `now() - interval '1 s'`),
  ],
  ['data as an array', 'cell_data_object', cellData(`'[]'`)],
  ['kind inside data', 'cell_data_no_kind', cellData(`'{"kind": null}'`)],
  ['too large a text form', 'cell_data_text_size', cellData(`jsonb_build_object('a', repeat('x', 524288))`)],
  ['data of one byte', 'cell_data_bytes', cellData(`'{}'`, 1)],
  ['data of 262145 bytes', 'cell_data_bytes', cellData(`'{}'`, 262_145)],
  ['another level', 'cell_grant_level', `${cellGrant('role', `'r'`).replace('viewer', 'owner')}`],
  ['both principals', 'cell_grant_one_principal', cellGrant('actor_id, role', `${actor}, 'r'`)],
  [
    'a scope without a role',
    'cell_grant_scope_of_role',
    cellGrant('actor_id, scope_id', `${actor}, ${actor}`),
  ],
  ['two grants of one principal', 'cell_grant_cell_principal_key', cellGrant('role', `'r'`, `'r'`)],
  ['a field name in upper case', 'cell_field_name_form', field(`'Name'`)],
  ['a field name of 65', 'cell_field_name_form', field(`repeat('a', 65)`)],
  ['an empty position', 'cell_item_position_form', item(`''`)],
  ['a position of 201', 'cell_item_position_form', item(`repeat('a', 201)`)],
  ['a position with é', 'cell_item_position_form', item(`'é'`)],
  ['a position with a line end', 'cell_item_position_form', item(`E'a\n'`)],
  ['a role scope without a kind', 'role_grant_scope_paired', roleGrant('scope_id', actor)],
  ['a reason without a revocation', 'role_grant_reason_revoked', roleGrant('revoked_reason', `''`)],
  ['two live global grants of a role', 'role_grant_live', roleGrant('revoked_at', 'null', 'null')],
  ['an offer with half a scope', 'role_grant_offer_scope_paired', offer('scope_kind', `'k'`)],
  ['an offer with two ends', 'role_grant_offer_one_end', offer('accepted_at, expired_at', 'now(), now()')],
  ['a decline reason alone', 'role_grant_offer_reason_declined', offer('decline_reason', `''`)],
  ['a resulting grant alone', 'role_grant_offer_result_accepted', offer('resulting_role_grant_id', actor)],
  ['two pending offers of one key', 'role_grant_offer_open', offer('message', 'null', 'null')],
  ['another audit outcome', 'audit_inbox_outcome', audit('ip', `'x', 'maybe', null`)],
  ['audit metadata as an array', 'audit_inbox_metadata_object', audit('metadata', `'x', 'success', '[]'`)],
  [
    'a number given twice',
    'audit_log_0_pkey',
    insert('audit_log', 'event_type, outcome, seq', `'x', 'success', 7`, `'x', 'success', 7`),
  ],
])('the database refuses %s', async (_what, constraint, text) => {
  const error = await client.query(text).catch((caught) => caught)
  expect(error).toBeInstanceOf(pg.DatabaseError)
  expect(error.constraint).toBe(constraint)
})

test('the database refuses a grant with neither principal', async () => {
  await expect(client.query(cellGrant('granted_by', actor))).rejects.toMatchObject({
    code: expect.stringMatching(/^23(502|514)$/),
  })
})

test('the widest values that the rules allow are stored', async () => {
  await client.query('begin')
  await client.query(cell('kind, path', `repeat('é', 128), repeat('é', 256)`))
  await client.query(field(`repeat('a', 64)`))
  await client.query(item(`repeat('z', 200)`))
  await client.query(cellData(`jsonb_build_object('a', repeat('x', 262134))`, 262_144))
  await client.query(roleGrant('scope_kind, scope_id', `'a', ${actor}`, `'b', ${actor}`, 'null, null'))
  await client.query('rollback')
})

test('ended rows free their place: a path, a role grant, an offer', async () => {
  await client.query('begin')
  await client.query(cell('path, deleted_at', `'/p', now()`, `'/p', now()`, `'/p', null`))
  await client.query(roleGrant('revoked_at, closed_at', 'now(), null', 'null, now()', 'null, null'))
  await client.query(offer('declined_at, expired_at', 'now(), null', 'null, now()', 'null, null'))
  await client.query('rollback')
})

test('generated columns follow their source columns', async () => {
  await client.query('begin')
  const grants = await client.query(
    `${cellGrant('actor_id, role, scope_id', `${actor}, null, null`, `null, 'r', null`, `null, 'r', ${account}`)}
     returning principal`,
  )
  expect(grants.rows.map((row) => row.principal)).toEqual([`a:${id(2)}`, 'r:*:r', `r:${id(1)}:r`])
  const times = `select changed_at = created_at as created, changed_at = updated_at as updated
                   from cell where id = ${theCell}`
  expect((await client.query(times)).rows).toEqual([{ created: true, updated: null }])
  await client.query(`update cell set updated_at = created_at + interval '1 h' where id = ${theCell}`)
  expect((await client.query(times)).rows).toEqual([{ created: false, updated: true }])
  await client.query('rollback')
})

test('the purge of an account deletes what it owns and clears references elsewhere', async () => {
  const other = `'${id(5)}'`
  await client.query('begin')
  await client.query(`
    insert into account (id, username, password_hash) values ('${id(4)}', 'other', 'x');
    insert into actor (id, account_id, name, name_key) values (${other}, '${id(4)}', '', '');
    update cell set created_by = ${actor}, updated_by = ${actor} where id = ${theCell};
    ${cellGrant('actor_id, granted_by', `${actor}, ${other}`, `${other}, ${actor}`)};
    ${roleGrant('id', `'${id(6)}'`)};
    ${offer('offer_id, accepted_at, resulting_role_grant_id', `'${id(7)}', now(), '${id(6)}'`)};
    update role_grant_offer set to_account_id = '${id(4)}';
    update role_grant set source_offer_id = '${id(7)}'`)
  await client.query(`delete from account where id = ${account}`)
  const { rows } = await client.query(
    `select created_by, updated_by, version,
            (select array_agg(granted_by) from cell_grant where cell_id = cell.id) as granters,
            (select count(*)::int from role_grant) as grants,
            (select resulting_role_grant_id is null and accepted_at is not null from role_grant_offer) as accepted
       from cell where id = ${theCell}`,
  )
  expect(rows).toEqual([
    { created_by: null, updated_by: null, version: 1, granters: [null], grants: 0, accepted: true },
  ])
  await client.query('rollback')
})

test('iso_timestamp prints the same as the driver, whatever the time zone of the session', async () => {
  await client.query(`begin; set local time zone 'Asia/Kolkata'`)
  const { rows } = await client.query(`
    select iso_timestamp('2026-01-02 03:04:05.678+00') as a, iso_timestamp('2026-01-02 03:04:05+02') as b,
           iso_timestamp('2026-12-31 23:59:59.9+00') as c, iso_timestamp(null) as d`)
  await client.query('rollback')
  expect(rows).toEqual([
    { a: '2026-01-02T03:04:05.678Z', b: '2026-01-02T01:04:05.000Z', c: '2026-12-31T23:59:59.900Z', d: null },
  ])
})

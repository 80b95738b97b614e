import { createHash } from 'node:crypto'
import type pg from 'pg'
import { createSessionCookie, sessionIdOf } from '../src/auth/cookie.ts'
import { createKeyRing } from '../src/auth/key-ring.ts'
import { randomToken } from '../src/auth/secrets.ts'
import { insertAudit, insertEdges, insertShapes, type ShapeName } from './world-relations.ts'

/**
 * A generated world of cells, the same for the same seed and size. It has heavy tails: the first accounts own most
 * cells and hold most grants. 30 % of the cells are public, 2 % deleted, 1 % system cells; 2 % have a path, and so
 * have the oldest 2 %. With `relations` it also has edges, an audit row for every cell, and the cells of `shapeId`.
 */
type WorldOptions = { cells: number; seed?: number; passwordHash?: string; relations?: boolean }

/** Callers with a known role in every world. */
export const callers = [
  'owner',
  'admin',
  'grants_10',
  'grants_10000',
  'role_holder',
  'nobody',
  'scoped_50',
  'ten_oldest',
] as const
export type CallerName = (typeof callers)[number]

/** The index of a caller's account; account, actor and cell ids derive from indexes. */
export const indexOf = (caller: CallerName): number => callers.indexOf(caller)
/** The id of a cell of a known shape, in a world with relations. */
export const shapeId = (name: ShapeName): string => idOf(`cell:${name}`, 0)
export const idOf = (
  what: 'account' | 'actor' | 'cell' | 'scope' | `cell:${ShapeName}`,
  index: number,
): string =>
  createHash('md5')
    .update(`${what}:${index}`)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
const accountsOf = (cells: number): number => Math.max(1000, Math.floor(cells / 100))

/** The index of the first cell that no named caller owns; `owner` owns many, the other callers none. */
const firstOrdinary = callers.length
const scopes = 50
const teams = 20

export async function generateWorld(client: pg.Client, options: WorldOptions): Promise<void> {
  const { cells, seed = 1, passwordHash = '-', relations = false } = options
  const accounts = accountsOf(cells)
  const later = await dropIndexes(client)
  // Numbers in 0..1 that depend only on the seed; ids come from md5, as in `idOf`. PostgreSQL inlines these functions,
  // because their bodies are immutable: it would not if they concatenated a number that is not cast.
  await client.query(`
    set synchronous_commit = off;
    set maintenance_work_mem = '1GB';
    create function pg_temp.u(i bigint, salt int) returns float8 language sql immutable
      as $$ select (hashint8extended(i, ${seed} * 1000 + salt) & 4294967295) / 4294967296.0::float8 $$;
    create function pg_temp.id(what text, i bigint) returns uuid language sql immutable
      as $$ select md5(what || ':' || i::text)::uuid $$;
    create function pg_temp.created(i bigint) returns timestamptz language sql immutable
      as $$ select timestamptz '${new Date().toISOString()}'
        - interval '1 year' * ((${cells} - i + (i % 10 = 9)::int) / ${cells}::float8) $$;
    create function pg_temp.path(i bigint) returns text language sql immutable
      as $$ select case when i % 50 = 0 then 'docs/' || (i % 1000)::text || '/' || i::text
        when i < ${cells} / 50 then 'archive/' || i::text end $$;`)
  await client.query(`
    insert into account (id, username, password_hash, created_at)
    select pg_temp.id('account', i), 'user' || i, '${passwordHash}', now() - interval '1 year'
    from generate_series(0, ${accounts - 1}) i`)
  await client.query(`
    insert into actor (id, account_id, name, name_key, created_at)
    select pg_temp.id('actor', i), pg_temp.id('account', i), 'user' || i, 'user' || i, now() - interval '1 year'
    from generate_series(0, ${accounts - 1}) i`)
  await client.query(`
    insert into role_grant (actor_id, role, scope_kind, scope_id, created_at)
    select pg_temp.id('actor', i), 'team_' || floor(pg_temp.u(i, 1) * ${teams}),
      case when i % 2 = 0 then 'scope' end, case when i % 2 = 0 then pg_temp.id('scope', i % ${scopes}) end, now()
    from generate_series(${firstOrdinary}, ${accounts - 1}, 2) i
    union all values (pg_temp.id('actor', ${indexOf('admin')}), 'admin', null, null::uuid, now()),
      (pg_temp.id('actor', ${indexOf('role_holder')}), 'crowd', null, null, now())
    union all
    select pg_temp.id('actor', ${indexOf('scoped_50')}), 'member', 'scope', pg_temp.id('scope', i), now()
    from generate_series(0, ${scopes - 1}) i`)
  await insertCells(client, cells, accounts)
  await insertGrants(client, cells, accounts)
  if (relations) {
    await insertEdges(client, cells)
    await insertAudit(client, cells)
    await insertShapes(client, cells, idOf('actor', indexOf('owner')))
  }
  for (const definition of later) await client.query(definition)
  await client.query('vacuum (analyze)')
}

/** A year of cells in order of creation; every tenth has the same timestamp as the one before. */
async function insertCells(client: pg.Client, cells: number, accounts: number): Promise<void> {
  await client.query(`
    insert into cell (id, kind, visibility, path, data, data_bytes, created_by, created_at, updated_at, updated_by,
      version, deleted_at)
    select pg_temp.id('cell', i), kind, case when pg_temp.u(i, 2) < 0.3 then 'public' else 'private' end,
      pg_temp.path(i),
      data, octet_length(data::text), created_by, created_at, updated_at,
      case when updated_at is not null then created_by end, case when updated_at is null then 1 else 2 end,
      case when pg_temp.u(i, 3) < 0.02 then now() end
    from (
      select i,
        case when pg_temp.u(i, 4) < 0.3 then null when pg_temp.u(i, 4) < 0.7 then 'note'
          when pg_temp.u(i, 4) < 0.999 then 'image' else 'rare' end as kind,
        jsonb_build_object('label', 'Cell ' || i, 'summary', repeat('word ', 4 + (pg_temp.u(i, 5) ^ 4 * 200)::int),
          'rank', i) as data,
        case when pg_temp.u(i, 6) < 0.01 then null when pg_temp.u(i, 7) < 0.05 then pg_temp.id('actor', 0)
          else pg_temp.id('actor', ${firstOrdinary} + floor(pg_temp.u(i, 7) ^ 3 * ${accounts - firstOrdinary})::bigint)
        end as created_by,
        created_at,
        case when pg_temp.u(i, 8) < 0.3 then created_at + pg_temp.u(i, 9) * (now() - created_at) end as updated_at
      from generate_series(0, ${cells - 1}) i, lateral (select pg_temp.created(i)) t (created_at)
    ) made`)
  await client.query(`
    insert into cell_usage (account_id, shard, cells, bytes)
    select account_id, 0, count(*), sum(data_bytes) from cell join actor on actor.id = cell.created_by group by account_id`)
}

/** Half as many grants as cells, and those of the callers. Cells are not looked up: that takes as long as making them. */
async function insertGrants(client: pg.Client, cells: number, accounts: number): Promise<void> {
  const ordinary = `'actor', ${firstOrdinary} + floor(pg_temp.u(i, 12) ^ 2 * ${accounts - firstOrdinary})::bigint`
  const give = (cell: string, principal: string, from: string) => `
    insert into cell_grant (cell_id, level, actor_id, role, scope_id, cell_created_at, cell_path)
    select distinct on (at, actor_id, role, scope_id)
      pg_temp.id('cell', at), case when pg_temp.u(i, 10) < 0.2 then 'editor' else 'viewer' end, actor_id, role, scope_id,
      pg_temp.created(at), pg_temp.path(at)
    from (select i, ${cell}, ${principal} from ${from}) made (i, at, actor_id, role, scope_id)
    order by at, actor_id, role, scope_id, i`
  await client.query(
    give(
      `floor(pg_temp.u(i, 11) * ${cells})::bigint`,
      `case when i % 5 > 0 then pg_temp.id(${ordinary}) end,
        case when i % 5 = 0 then 'team_' || floor(pg_temp.u(i, 12) * ${teams}) end,
        case when i % 10 = 0 then pg_temp.id('scope', i % ${scopes}) end`,
      `generate_series(1, ${Math.floor(cells / 2)}) i`,
    ),
  )
  const spread = (count: number) =>
    `(select i * ${cells}::bigint / ${count} as i from generate_series(0, ${count - 1}) i) i`
  const actor = (caller: CallerName) => `${idOfActor(caller)}, null::text, null::uuid`
  await client.query(give('i', actor('grants_10'), spread(10)))
  await client.query(give('i', actor('grants_10000'), spread(Math.min(cells, 10_000))))
  await client.query(give('i', `null::uuid, 'crowd', null::uuid`, spread(Math.min(cells, 100_000))))
  // Some 200 cells per scope, whatever the size.
  const member = `null::uuid, 'member', pg_temp.id('scope', floor(pg_temp.u(i, 13) * ${scopes})::bigint)`
  await client.query(give('i', member, spread(Math.min(cells, 200 * scopes))))
  // The ten oldest cells: half of them granted, half of them owned.
  await client.query(`
    update cell set visibility = 'private', deleted_at = null,
      created_by = case when i % 2 = 0 then ${idOfActor('ten_oldest')} else created_by end
    from generate_series(0, 9) i where id = pg_temp.id('cell', i)`)
  await client.query(give('i', actor('ten_oldest'), '(select 2 * n + 1 as i from generate_series(0, 4) n) i'))
}

const idOfActor = (caller: CallerName): string => `pg_temp.id('actor', ${indexOf(caller)})`

/** Drops what is faster to build at the end; resolves to the statements that restore it. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const tables = `('cell', 'cell_grant', 'cell_field', 'cell_item', 'audit_log')`
  const constraints = await client.query<{ drop: string; definition: string }>(`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as definition
    from pg_constraint where contype in ('f', 'p', 'u') and conrelid::regclass::text in ${tables}
    order by contype = 'f' desc, conname`)
  const indexes = await client.query<{ drop: string; definition: string }>(`
    select format('drop index %I', i.relname) as drop, replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ') as definition
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    where t.relname in ${tables} and not exists (select from pg_constraint where conindid = i.oid)`)
  const all = [...indexes.rows, ...constraints.rows]
  for (const one of all) await client.query(one.drop)
  return all.reverse().map(({ definition }) => definition)
}

/** Opens one session per account index; the `Cookie` header of each. */
export async function openSessions(
  client: pg.Client,
  indexes: readonly number[],
  keys: readonly string[],
): Promise<string[]> {
  const tokens = indexes.map(() => randomToken())
  const { rows } = await client.query<{ id: string; expires_at: string }>(
    `insert into auth_session (id, account_id, expires_at)
     select id, account_id, now() + interval '30 days' from unnest($1::text[], $2::uuid[]) t (id, account_id)
     returning id, to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as expires_at`,
    [tokens.map(sessionIdOf), indexes.map((index) => idOf('account', index))],
  )
  const expires = new Map(rows.map((row) => [row.id, row.expires_at]))
  const issuer = createSessionCookie(createKeyRing(keys), { secure: true, hostPrefix: false })
  return tokens.map((token) => {
    const value = issuer.issue(token, expires.get(sessionIdOf(token)) as string)
    return value.slice(0, value.indexOf(';'))
  })
}

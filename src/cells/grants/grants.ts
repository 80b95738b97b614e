import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Audit } from '../../audit/audit.ts'
import type { Via } from '../../core/operate.ts'
import type { Single } from '../../core/single.ts'
import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { jsonObject } from '../../db/json.ts'
import { brokenConstraint } from '../../db/servers/failure.ts'
import { refusal } from '../../errors.ts'
import { Uuid } from '../../wire/types.ts'
import { me, tier, touched } from '../access.ts'

/** Wire form of a cell grant. */
export const CellGrant = z.object({
  id: Uuid,
  cell_id: Uuid,
  level: z.enum(['viewer', 'editor']),
  actor_id: Uuid.nullable(),
  role: z.string().nullable(),
  scope_id: Uuid.nullable(),
  granted_by: Uuid.nullable(),
  created_at: z.string(),
})
export type CellGrant = z.output<typeof CellGrant>

/** The grant with this alias as JSON text, with timestamps in wire form. */
export const grantText = (alias: string): Sql =>
  jsonObject(alias, {
    id: 'word',
    cell_id: 'word',
    level: 'word',
    actor_id: 'word?',
    role: 'text?',
    scope_id: 'word?',
    granted_by: 'word?',
    created_at: 'time',
  })
export const grantJson = (alias: string): Sql => sql`(${grantText(alias)})::json`

export type Principal = { actor_id: string } | { role: string; scope_id: string | null }

export type NewCellGrant = {
  cell_id: string
  level: 'viewer' | 'editor'
  principal: Principal
  /** Must manage the cell when the statement runs; null skips the check, as in the test kit. */
  granted_by: string | null
}

/**
 * Gives a principal a level on a cell. There is one row per principal: a repeated grant replaces the level, an
 * equal level writes nothing. The caller of this function holds the cell's lock. One statement checks and
 * writes, so that neither the owner nor an actor that is not live ever becomes a principal.
 */
export async function upsertCellGrant(
  db: Queryable,
  audit: Audit,
  grant: NewCellGrant,
  detail: Via = {},
): Promise<CellGrant> {
  const { principal } = grant
  const [actor_id, role, scope_id] = partsOf(principal)
  const row = await db
    .first<Upserted>(sql`
      with ${upserting(grant)}
      select anchor.is_owner, (select account_id from grantee) as account_id,
        (select ${grantJson('w')} from written w) as written,
        (select ${grantJson('g')} from cell_grant g where g.cell_id = anchor.id and g.principal = coalesce(
          'a:' || ${actor_id}::uuid, 'r:' || coalesce(${scope_id}::uuid::text, '*') || ':' || ${role})) as stored
      from anchor`)
    .catch(refuseVanished)
  if (!row) throw refusal('cell_not_found')
  if (row.is_owner) throw refusal('cell_grant_principal_is_owner')
  if ('actor_id' in principal && row.account_id === null) throw refusal('cell_grant_unknown_actor')
  if (row.written) {
    const found = { id: row.written.id, account_id: row.account_id as string }
    recordGrant(audit, grant, (column) => found[column], detail)
    return row.written
  }
  // Neither written nor stored: without the cell's lock, another call has inserted the row meanwhile.
  return row.stored ?? (await upsertCellGrant(db, audit, grant, detail))
}

/** `stored` is the grant before this statement; `account_id` is set only if the grantee is a live actor. */
type Upserted = {
  is_owner: boolean
  account_id: string | null
  written: CellGrant | null
  stored: CellGrant | null
}

/**
 * The same in one statement with its audit row, if that gives the grant or changes it; undefined, and nothing is done,
 * if not. It never waits for the row lock of the cell: the transaction that holds it may take away a right that this
 * statement has already checked.
 */
export async function grantAtOnce(single: Single, grant: NewCellGrant): Promise<CellGrant | undefined> {
  const row = await single<{ given: CellGrant }>(
    sql`${upserting(grant, sql`for no key update of c skip locked`)}, own as (
      select w.id, (select account_id from grantee) as account_id, ${grantJson('w')} as given from written w
    )`,
    'own',
    (audit, found) => recordGrant(audit, grant, found),
  ).catch(refuseVanished)
  return row?.given
}

function recordGrant(
  audit: Audit,
  { cell_id, principal }: NewCellGrant,
  found: (column: 'id' | 'account_id') => string,
  detail: Via = {},
): void {
  const target =
    'actor_id' in principal
      ? { target_actor_id: principal.actor_id, target_account_id: found('account_id') }
      : {}
  audit('cell_grant_create', { cell_id, grant_id: found('id'), principal, ...detail }, target)
}

const partsOf = (principal: Principal) =>
  'actor_id' in principal ? [principal.actor_id, null, null] : [null, principal.role, principal.scope_id]

/** Common table expressions that write the grant if `anchor` is there; `suffix` ends the statement that finds it. */
function upserting({ cell_id, level, principal, granted_by }: NewCellGrant, suffix = sql.empty): Sql {
  const [actor_id, role, scope_id] = partsOf(principal)
  const new_id = randomUUID()
  return sql`${me(granted_by)}, anchor as (
      select c.id, c.created_at, c.path, coalesce(c.created_by = ${actor_id}::uuid, false) as is_owner
      from cell c, me
      where c.id = ${cell_id}::uuid and ${granted_by === null ? tier.live : tier.manage} ${suffix}
    ), grantee as (
      select account.id as account_id from actor join account on account.id = actor.account_id
      where actor.id = ${actor_id}::uuid and actor.deleted_at is null and account.deleted_at is null
    ), written as (
      insert into cell_grant as g (id, cell_id, level, actor_id, role, scope_id, cell_created_at, cell_path, granted_by)
      select ${new_id}::uuid, anchor.id, ${level}, ${actor_id}::uuid, ${role}, ${scope_id}::uuid, anchor.created_at,
        anchor.path, ${granted_by}::uuid
      from anchor where ${role}::text is not null or (not is_owner and exists (select from grantee))
      on conflict (cell_id, principal) do update set level = excluded.level, granted_by = excluded.granted_by
        where g.level <> excluded.level
      returning *
    ), ${touched(sql`select cell_id from written where id <> ${new_id}::uuid`)}`
}

/** Maps the foreign key errors of actors that were purged between the check and the insert. */
function refuseVanished(error: unknown): never {
  const broken = brokenConstraint(error)
  if (broken === 'cell_grant_actor_id_fkey') throw refusal('cell_grant_unknown_actor')
  if (broken === 'cell_grant_granted_by_fkey') throw refusal('account_vanished')
  throw error
}

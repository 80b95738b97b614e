import { z } from 'zod'
import { mutation } from '../core/action.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { CellData } from '../registry/hooks.ts'
import { holdsAdmin } from '../roles/grants.ts'
import { issue } from '../wire/issues.ts'
import { Int, Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'
import { Cell, cellColumns, cellWriteError, Path, Visibility } from './cells.ts'
import { checkData, compactBytes, Data, DataPatch, dataRule, mergePatch, sameJson } from './data.ts'
import { validated } from './hooks.ts'
import {
  cellsUnderWay,
  counted,
  loneShard,
  noQuota,
  ownShard,
  quotaOf,
  room,
  storeWithin,
  type Write,
} from './usage.ts'

export const cell_update = mutation({
  doc: 'Change data (whole or by merge patch), visibility or path. Only the owner and admins change the visibility, only admins the path. If nothing differs, nothing is written.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_update',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({
    cell_id: Uuid,
    data: Data.optional(),
    data_patch: DataPatch.optional(),
    visibility: Visibility.optional(),
    path: Path.nullable().optional(),
    expected_version: Int(1, 2_147_483_647).optional(),
  }),
  output: z.object({ cell: Cell }),
  errors: [
    'cell_path_admin_only',
    'cell_not_found',
    'cell_visibility_manage_only',
    'cell_version_conflict',
    'cell_kind_in_data',
    'cell_data_invalid',
    'cell_path_taken',
    'cell_quota_exceeded',
    'account_vanished',
  ],
  refine(input) {
    if (input.data !== undefined && input.data_patch !== undefined)
      throw refusal('invalid_params', {
        issues: [issue(['data_patch'], 'invalid_value', 'Give either `data` or `data_patch`.')],
      })
    return input
  },
  async handler(input, { app, account, actor, role_grants, db, audit, fail }) {
    app.disk.admit()
    const { cell_id, expected_version } = input
    if (typeof input.path === 'string' && !holdsAdmin(role_grants)) throw fail('cell_path_admin_only')
    const { stored, manages, is_admin, owner } = await lockEditable(db, actor.id, cell_id)
    const { visibility = stored.visibility, path = stored.path } = input
    if (visibility !== stored.visibility && !manages) throw fail('cell_visibility_manage_only')
    if (path !== stored.path && !is_admin) throw fail('cell_path_admin_only')
    if (expected_version !== undefined && expected_version !== stored.version)
      throw fail('cell_version_conflict', { current_version: stored.version })

    const merged = mergedData(stored, input)
    const data = merged ? await validated(app, stored.kind, merged) : stored.data
    const change = {
      ...(!sameJson(data, stored.data) && { data }),
      ...(visibility !== stored.visibility && { visibility }),
      ...(path !== stored.path && { path }),
    }
    if (Object.keys(change).length === 0) return { cell: stored }
    const field = input.data_patch ? 'data_patch' : 'data'
    const grown = owner && change.data && compactBytes(change.data) - owner.data_bytes
    const quota = is_admin ? noQuota : quotaOf(app.config)
    const store = grown
      ? {
          account_id: owner.account_id,
          amount: { cells: 0, bytes: grown },
          quota,
          shard: owner.account_id === account.id && app.gate.isAlone(account.id) ? loneShard : ownShard,
        }
      : undefined
    const cell = await write(db, actor.id, cell_id, change, store).catch((error) => {
      throw cellWriteError(error, field)
    })
    if (!cell) {
      // The caller lost a right between the lock and the write: refuse as the lock would now.
      const now = await lockEditable(db, actor.id, cell_id)
      if (change.visibility !== undefined && !now.manages) throw fail('cell_visibility_manage_only')
      throw fail(change.path !== undefined && !now.is_admin ? 'cell_path_admin_only' : 'cell_not_found')
    }
    audit('cell_update', { cell_id })
    return { cell }
  },
})

type Change = { data?: CellData; visibility?: string; path?: string | null }

/**
 * Locks the cell if the caller may edit it; a row that fails the check is never locked. After a wait for the
 * lock, PostgreSQL returns the newest row but has checked the rights as of before the wait. In that case it runs
 * again, so that a former holder of a right never sees what was written after it was revoked.
 */
async function lockEditable(db: Queryable, actor_id: string, cell_id: string): Promise<Locked> {
  const row = await db.first<LockedRow>(sql`
    with ${me(actor_id)}
    select ${cellColumns}, ${tier.manage} as manages, me.is_admin, c.data_bytes,
      (select account_id from actor where id = c.created_by) as owner_id,
      (select before.version from cell before where before.id = c.id) as version_before
    from cell c, me where c.id = ${cell_id}::uuid and ${tier.edit} for no key update of c`)
  if (!row) throw refusal('cell_not_found')
  const { manages, is_admin, data_bytes, owner_id, version_before, ...stored } = row
  if (version_before !== stored.version) return await lockEditable(db, actor_id, cell_id)
  const owner = owner_id === null ? undefined : { account_id: owner_id, data_bytes }
  return { stored, manages, is_admin, owner }
}

type Locked = {
  stored: Cell
  manages: boolean
  is_admin: boolean
  /** The account whose quota the data counts against; system cells count against none. */
  owner: { account_id: string; data_bytes: number } | undefined
}

type LockedRow = Cell & {
  manages: boolean
  is_admin: boolean
  data_bytes: number
  owner_id: string | null
  version_before: number
}

/** The data as it would be after the call; undefined if the call does not change it. */
function mergedData(
  stored: Cell,
  { data, data_patch }: { data?: CellData; data_patch?: CellData },
): CellData | undefined {
  const sent = data ?? data_patch
  if (!sent) return undefined
  if (Object.hasOwn(sent, 'kind')) throw refusal('cell_kind_in_data')
  if (data) return data
  const merged = mergePatch(stored.data, sent)
  const problem = checkData(merged)
  if (problem) throw refusal('invalid_params', { issues: [issue(['data_patch'], problem, dataRule)] })
  return merged
}

/**
 * Checks the tier again: this statement begins after the lock is held, so a revoked right can no longer write.
 * `stored` is what the write adds to the usage of the owner's account.
 */
async function write(
  db: Queryable,
  actor_id: string,
  cell_id: string,
  { data, visibility, path }: Change,
  stored: Write | undefined,
): Promise<Cell | undefined> {
  const sets = [
    sql`version = c.version + 1, updated_by = ${actor_id}::uuid,
      updated_at = greatest(statement_timestamp(), c.created_at)`,
  ]
  if (data) sets.push(sql`data = ${JSON.stringify(data)}::jsonb, data_bytes = ${compactBytes(data)}`)
  if (visibility !== undefined) sets.push(sql`visibility = ${visibility}`)
  if (path !== undefined) sets.push(sql`path = ${path}`)
  const update = (from: Sql) => sql`
    update cell c set ${sql.join(sets, ', ')}
    from ${from} where c.id = ${cell_id}::uuid and ${tier.edit}
      ${visibility === undefined ? sql.empty : sql`and ${tier.manage}`}
      ${path === undefined ? sql.empty : sql`and me.is_admin`}
    returning ${cellColumns}`
  if (!stored) return await db.first<Cell>(sql`with ${me(actor_id)} ${update(sql`me`)}`)
  return await storeWithin(db, stored, cellsUnderWay, (way) =>
    db.first<Cell>(sql`
      with ${me(actor_id)}, ${room(stored, way)}, written as (${update(sql`me, room`)}), ${counted(stored, way)}
      select ${cellColumns} from written c`),
  )
}

import { z } from 'zod'
import { mutation } from '../core/declare.ts'
import type { SharedStatement, Single } from '../core/single.ts'
import { briefly, type JoinedRead, type Queryable, type ReadOnly, type Sql, sql } from '../db/db.ts'
import { unplanned } from '../db/unplanned.ts'
import { refusal } from '../errors.ts'
import type { CellData } from '../registry/hooks.ts'
import { holdsAdmin } from '../roles/admin.ts'
import { issue } from '../wire/issues.ts'
import { Int, Uuid } from '../wire/types.ts'
import { isUntouched, me, tier } from './access.ts'
import { Cell, cellColumns, cellWriteError, Path, Visibility } from './cells.ts'
import { type Compact, checkData, compact, Data, DataPatch, dataRule, mergePatch, sameJson } from './data.ts'
import { validated } from './hooks.ts'
import {
  cellsUnderWay,
  loneShard,
  noQuota,
  ownShard,
  quotaOf,
  sharedAmountColumns,
  sharedAmounts,
  sharedCounted,
  sharedRoom,
  storeFar,
  storeWithin,
  type Way,
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
  async handler(input, { app, account, actor, role_grants, db, single, audit, fail }) {
    app.disk.admit()
    const { cell_id, expected_version } = input
    if (typeof input.path === 'string' && !holdsAdmin(role_grants)) throw fail('cell_path_admin_only')

    const decide = async ({ stored, manages, is_admin, owner }: Editable): Promise<Change | undefined> => {
      const { visibility = stored.visibility, path = stored.path } = input
      if (visibility !== stored.visibility && !manages) throw fail('cell_visibility_manage_only')
      if (path !== stored.path && !is_admin) throw fail('cell_path_admin_only')
      if (expected_version !== undefined && expected_version !== stored.version)
        throw fail('cell_version_conflict', { current_version: stored.version })
      const merged = mergedData(stored, input)
      const data = merged ? await validated(app, stored.kind, merged) : stored.data
      const change = {
        ...(!sameJson(data, stored.data) && { data: compact(data) }),
        ...(visibility !== stored.visibility && { visibility }),
        ...(path !== stored.path && { path }),
      }
      if (Object.keys(change).length === 0) return undefined
      const bytes = owner && change.data ? change.data.bytes - owner.data_bytes : 0
      const isLone = owner?.account_id === account.id && app.gate.isAlone(account.id)
      const counts = owner && {
        account_id: owner.account_id,
        amount: { cells: 0, bytes },
        quota: is_admin ? noQuota : quotaOf(app.config),
        shard: isLone ? loneShard : ownShard,
      }
      return { ...change, cell_id, actor_id: actor.id, version: stored.version, counts }
    }
    const refused = (error: unknown) => cellWriteError(error, input.data_patch ? 'data_patch' : 'data')

    // Within the mutation of an own method `db` reads what that has written before.
    const reader: Pick<ReadOnly, 'joined'> = 'joined' in db ? (db as unknown as ReadOnly) : app.db
    const row = await reader.joined(editable, [actor.id, cell_id])
    if (row) {
      const seen = editableOf(row)
      const change = await decide(seen)
      if (!change) return { cell: seen.stored }
      // A new path is copied to the grants of the cell, and without the lock a grant just created could be missed.
      if (change.path === undefined) {
        const cell = await writeAtOnce(db, single, change).catch((error) => {
          throw refused(error)
        })
        if (cell) return { cell }
        // A purge of the actor also removes its rights.
        if (!(await db.first(sql`select 1 from actor where id = ${actor.id}::uuid`)))
          throw fail('account_vanished')
      }
    }
    const locked = await lockEditable(db, actor.id, cell_id)
    const change = await decide(locked)
    if (!change) return { cell: locked.stored }
    const cell = await write(db, change).catch((error) => {
      throw refused(error)
    })
    if (!cell) {
      // The caller lost a right between the lock and the write: refuse as the lock would now.
      const now = await lockEditable(db, actor.id, cell_id)
      if (change.visibility !== undefined && !now.manages) throw fail('cell_visibility_manage_only')
      throw fail(change.path !== undefined && !now.is_admin ? 'cell_path_admin_only' : 'cell_not_found')
    }
    if (change.path !== undefined)
      await db.run(sql`update cell_grant set cell_path = ${change.path} where cell_id = ${cell_id}::uuid`)
    audit('cell_update', { cell_id })
    return { cell }
  },
})

type Change = {
  cell_id: string
  actor_id: string
  /** The version that the caller has seen. */
  version: number
  data?: Compact
  visibility?: string
  path?: string | null
  /** What it adds to the usage of the owner's account; undefined for system cells, which count against no account. */
  counts: Write | undefined
}

type Editable = {
  stored: Cell
  manages: boolean
  is_admin: boolean
  owner: { account_id: string; data_bytes: number } | undefined
}

type EditableRow = Cell & { manages: boolean; is_admin: boolean; data_bytes: number; owner_id: string | null }

const editableColumns = sql`${cellColumns}, ${tier.manage} as manages, me.is_admin, c.data_bytes,
  (select account_id from actor where id = c.created_by) as owner_id`

function editableOf({ manages, is_admin, data_bytes, owner_id, ...row }: EditableRow): Editable {
  const { nth: _, ...stored } = row as Cell & { nth?: number }
  const owner = owner_id === null ? undefined : { account_id: owner_id, data_bytes }
  return { stored, manages, is_admin, owner }
}

/** Max bytes of `data` of a cell that shares statements with others. */
const sharedBytesMax = 8192

/** Reads cells that callers may edit, except large ones. */
const editable: JoinedRead<[actor_id: string, cell_id: string], EditableRow> = {
  max: 16,
  statement: (keys) => sql`
    select asked.nth, one.* from
      unnest(${keys.map(([actor]) => actor)}::uuid[], ${keys.map(([, cell]) => cell)}::uuid[])
        with ordinality as asked (actor_id, cell_id, nth)
      cross join lateral (
        with ${me(sql`asked.actor_id`)}
        select ${editableColumns} from cell c, me
        where c.id = asked.cell_id and c.data_bytes <= ${sharedBytesMax} and ${tier.edit}
      ) one`,
}

/**
 * Locks the cell if the caller may edit it; a row that fails the check is never locked. After a wait for the lock,
 * PostgreSQL returns the newest row but has checked the rights as of before the wait. In that case the statement runs
 * again, so that a caller whose right was revoked never sees what was written afterwards.
 */
async function lockEditable(db: Queryable, actor_id: string, cell_id: string): Promise<Editable> {
  const row = await db.first<EditableRow & { version_before: number }>(sql`
    with ${me(actor_id)}
    select ${editableColumns}, (select before.version from cell before where before.id = c.id) as version_before
    from cell c, me where c.id = ${cell_id}::uuid and ${tier.edit} for no key update of c`)
  if (!row) throw refusal('cell_not_found')
  const { version_before, ...found } = row
  if (version_before !== found.version) return await lockEditable(db, actor_id, cell_id)
  return editableOf(found)
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
 * Writes a change (not of the path) without waiting; writes nothing if the cell, a right or the room has changed, or if
 * another call holds the row lock.
 */
async function writeAtOnce(db: Queryable, single: Single, change: Change): Promise<Cell | undefined> {
  const { cell_id, data, counts } = change
  const mayShare = !data || data.bytes <= sharedBytesMax
  const store = (way: Way) =>
    single<Cell, Key>(
      sql`${written([{ change, way }])}, own as (select ${cellColumns} from stored c)`,
      'own',
      (audit) => audit('cell_update', { cell_id }),
      mayShare ? { write: updates, key: { change, way } } : undefined,
    )
  return counts ? await storeFar(db, counts, cellsUnderWay, store) : await store(uncounted)
}

/** The same under the lock of the cell. */
async function write(db: Queryable, change: Change): Promise<Cell | undefined> {
  const store = (way: Way) =>
    db.first<Cell>(sql`with ${written([{ change, way }])} select ${cellColumns} from stored c`)
  const { counts } = change
  return counts ? await storeWithin(db, counts, cellsUnderWay, store) : await store(uncounted)
}

const uncounted: Way = { margin: null, shard: ownShard }

type Key = { change: Change; way: Way }

const updates: SharedStatement<Key> = { max: 16, statement: (keys) => written(keys, sql`, ${briefly}`) }

/**
 * Changes cells that still have the version that their callers have seen. It never waits for a row lock: the
 * transaction that holds the lock may take away a right that this statement has already checked.
 */
function written(keys: readonly Key[], joined: Sql = sql.empty): Sql {
  const each = <T>(of: (change: Change) => T): T[] => keys.map(({ change }) => of(change))
  const cell_ids = each(({ cell_id }) => cell_id)
  return sql`asked as (
      select asked.* from unnest(${unplanned(cell_ids, 'uuid[]')}, ${each(({ version }) => version)}::int[],
        ${each(({ actor_id }) => actor_id)}::uuid[], ${each(({ data }) => data?.text ?? null)}::text[],
        ${each(({ data }) => data?.bytes ?? null)}::int[],
        ${each(({ visibility }) => visibility ?? null)}::text[], ${each(({ path }) => path !== undefined)}::boolean[],
        ${each(({ path }) => path ?? null)}::text[],
        ${sharedAmounts(keys.map(({ change, way }) => ({ write: change.counts, way })))}
      ) with ordinality as asked (cell_id, version, actor_id, data, data_bytes, visibility, has_path, path,
        ${sharedAmountColumns}, nth)${joined}
    ), ${sharedRoom}, free as (
      select asked.nth, one.id from asked cross join lateral (
        with ${me(sql`asked.actor_id`)}
        select c.id from cell c, me
        where c.id = asked.cell_id and c.version = asked.version and ${tier.edit}
          and (asked.visibility is null or ${tier.manage}) and (not asked.has_path or me.is_admin)
          and ${isUntouched}
        for no key update of c skip locked
      ) one
      where asked.account_id is null or asked.account_id in (select account_id from room)
    ), written as (
      update cell c set version = c.version + 1, updated_by = asked.actor_id,
        updated_at = greatest(statement_timestamp(), c.created_at),
        data = coalesce(asked.data::jsonb, c.data), data_bytes = coalesce(asked.data_bytes, c.data_bytes),
        visibility = coalesce(asked.visibility, c.visibility),
        path = case when asked.has_path then asked.path else c.path end
      from asked join free using (nth) where c.id = free.id
      returning nth, ${cellColumns}
    ), ${sharedCounted('nth')}, stored as (select * from written)`
}

import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { App } from '../../core/app.ts'
import { mutation } from '../../core/declare.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { unplanned } from '../../db/unplanned.ts'
import { refusal } from '../../errors.ts'
import type { CellData } from '../../registry/hooks.ts'
import { holdsAdmin } from '../../roles/admin.ts'
import { issue } from '../../wire/issues.ts'
import { Uuid } from '../../wire/types.ts'
import { me, tiersOfMany } from '../access.ts'
import { Cell, cellWriteError } from '../cells.ts'
import { checkData, compactBytes, DataPatch, dataRule, mergePatch, sameJson } from '../data.ts'
import { mayCreate, validated } from '../hooks.ts'
import { cloneShard, clonesUnderWay, noQuota, quotaOf, storeWithin } from '../usage.ts'
import { type Copy, copyStatement } from './copy.ts'
import { cellsToClone, cloneLimits, tooLarge, type Walked } from './walk.ts'

export const cell_clone = mutation({
  doc: 'Copy a cell that the caller may view, with its visible edges. With `deep`, also copy all cells that these lead to: up to 1000 cells, 32 levels below the first, 10,000 edges and 16 MiB of data.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_clone',
  snapshot: true,
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  budget: 'cell_clone',
  input: z.strictObject({
    source_id: Uuid,
    deep: z.boolean().default(false),
    with_data_patch: DataPatch.optional(),
  }),
  output: z.object({ cell: Cell, cloned_count: z.int() }),
  errors: [
    'cell_not_found',
    'cell_kind_in_data',
    'cell_clone_too_large',
    'cell_data_invalid',
    'cell_create_forbidden',
    'cell_quota_exceeded',
    'account_vanished',
  ],
  async handler(
    { source_id, deep, with_data_patch: patch },
    { app, account, actor, role_grants, db, audit, afterCommit },
  ) {
    app.disk.admit()
    const caller = { actor_id: actor.id, account_id: account.id, is_admin: holdsAdmin(role_grants) }
    const { cell, ids, cost } = await clone(app, db, caller, { source_id, deep, patch })
    audit('cell_clone', { source_id, new_id: cell.id }, { cell_ids: ids })
    afterCommit(() => app.limiters.spend('cell_clone', account.id, cost))
    return { cell, cloned_count: ids.length }
  },
})

type Caller = { actor_id: string; account_id: string; is_admin: boolean }
type Wanted = { source_id: string; deep: boolean; patch: CellData | undefined }

async function clone(
  app: App,
  db: Queryable,
  caller: Caller,
  wanted: Wanted,
): Promise<{ cell: Cell; ids: string[]; cost: number }> {
  const { actor_id, account_id, is_admin } = caller
  const { source_id, deep, patch } = wanted
  const [root] = await sources(db, actor_id, [source_id])
  if (!root) throw refusal('cell_not_found')
  const data = patch && patched(root.data, patch)
  const bytes = compactBytes(data ?? root.data)
  const edgesOfCellMax = app.config.max_cell_edges
  const walked = await cellsToClone(db, actor_id, { id: root.id, bytes }, { deep, edgesOfCellMax })
  const { ids } = walked
  const changed = new Map(data && [[root.id, data]])
  const amount = { cells: ids.length, bytes: await runHooks(app, db, caller, walked, root, changed) }
  const copies = ids.map((id): Copy => ({ source_id: id, new_id: randomUUID(), data: changed.get(id) }))
  const write = { account_id, amount, quota: is_admin ? noQuota : quotaOf(app.config), shard: cloneShard }
  const cell = await storeWithin(db, write, clonesUnderWay, (way) =>
    db.first<Cell>(copyStatement(actor_id, copies, deep, write, way)),
  ).catch((error) => {
    throw cellWriteError(error, 'with_data_patch')
  })
  // A role of the caller expired since the walk and hid a cell. Each retry has fewer cells, so this terminates.
  if (!cell) return await clone(app, db, caller, wanted)
  const { cells, bytes: size } = amount
  const { edges, examined } = walked
  const copied = cells + Math.ceil(size / unitBytes) + Math.ceil(edges / unitEdges)
  const cost = copied + Math.floor((examined - edges) / unitHidden)
  return { cell, ids: copies.map(({ new_id }) => new_id), cost }
}

/** This many bytes, or edges, cost as much as one more cell. */
const unitBytes = 16_384
const unitEdges = 32
/** The same for edges that are only looked up. Coarse, so that what is left of a budget tells of no few hidden cells. */
const unitHidden = 1_000

type Source = { id: string; kind: string | null; visibility: string; data: CellData }

const sources = (db: Queryable, actor_id: string, ids: string[]): Promise<Source[]> =>
  db.rows<Source>(sql`
    with ${me(actor_id)}
    select c.id, c.kind, c.visibility, c.data
    from unnest(${unplanned(ids, 'uuid[]')}) with ordinality as wanted (id, nth) join cell c on c.id = wanted.id, me
    where ${tiersOfMany('c').view} order by wanted.nth`)

function patched(stored: CellData, patch: CellData): CellData {
  if (Object.hasOwn(patch, 'kind')) throw refusal('cell_kind_in_data')
  const merged = mergePatch(stored, patch)
  const problem = checkData(merged)
  if (problem) throw refusal('invalid_params', { issues: [issue(['with_data_patch'], problem, dataRule)] })
  return merged
}

/**
 * Runs the hooks for every new cell: first the data hook for all, then the create hook. Data that they leave
 * unchanged is copied inside the database; without hooks, the data of the children is never read here. Resolves
 * to the total bytes of the new data.
 */
async function runHooks(
  app: App,
  db: Queryable,
  caller: Caller,
  { ids, bytes: walkedBytes }: Walked,
  root: Source,
  changed: Map<string, CellData>,
): Promise<number> {
  if (!app.hooks.validateData && !app.hooks.authorizeCreate) return walkedBytes
  const cells = ids.length === 1 ? [root] : await sources(db, caller.actor_id, ids)
  for (const { id, kind, data } of cells) {
    const before = changed.get(id) ?? data
    const after = await validated(app, kind, before)
    if (!sameJson(before, after)) changed.set(id, after)
  }
  const bytes = cells.reduce((sum, { id, data }) => sum + compactBytes(changed.get(id) ?? data), 0)
  if (bytes > cloneLimits.bytes) throw tooLarge('bytes')
  for (const { id, kind, visibility, data } of cells) {
    const wanted = { operation: 'clone' as const, kind, visibility, path: null, source_id: id }
    if (!(await mayCreate(app, caller, { ...wanted, data: changed.get(id) ?? data })))
      throw refusal('cell_create_forbidden')
  }
  return bytes
}

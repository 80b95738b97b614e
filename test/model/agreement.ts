import assert from 'node:assert/strict'
import { reasonOf } from '../helpers/outcome.ts'
import {
  admitting,
  isAdmin,
  isOwner,
  type Model,
  type ModelCell,
  mayEdit,
  mayManage,
  mayView,
  visibleEdges,
  type Who,
} from './access.ts'
import type { ListFilter, Step } from './moves.ts'
import type { Stage } from './stage.ts'
import { pick } from './world.ts'

/** Checks all reading methods, and writes that change nothing, against the rule and thereby against each other. */

type View = { stage: Stage; model: Model; who: Who }
type Row = { id: string; path: string | null; created_at: string; updated_at: string | null }
type Page = { cells: Row[]; next_cursor: string | null; cell_grants?: Record<string, { id: string }[]> }
type Edge = Record<string, string>

const ids = (cells: readonly { id: string }[]): string[] => cells.map(({ id }) => id).sort()
const outcome = (is: boolean): string => (is ? 'ok' : 'cell_not_found')

/** Checks `cell_list`: unfiltered, by ids, and with the filter of the step. */
export async function listsAgree(
  view: View,
  { order, filter }: Pick<Step, 'order' | 'filter'>,
): Promise<void> {
  const { model, who, stage } = view
  const visible = model.cells.filter((cell) => mayView(model, who, cell))
  const [all, named, filtered] = await Promise.all([
    listed(view, { ...order }),
    listed(view, { ids: [...model.cells.map(({ id }) => id), crypto.randomUUID()] }),
    who === null && ('created_by' in filter || 'shared_with' in filter)
      ? undefined
      : listed(view, {
          ...(filter.path_prefix === undefined
            ? order
            : { order_direction: order.order_direction, limit: order.limit }),
          ...filter,
          ...(filter.created_by !== undefined && { created_by: stage.actorIds[filter.created_by] }),
          ...(filter.ids && { ids: filter.ids.map((n) => pick(model, n).id) }),
        }),
  ])
  assert.deepEqual(ids(all), ids(visible), 'cell_list')
  assert.deepEqual(ids(named), ids(visible), 'cell_list by ids')
  if (filtered)
    assert.deepEqual(
      ids(filtered),
      ids(visible.filter((cell) => passes(view, cell, filter))),
      `cell_list ${JSON.stringify(filter)}`,
    )
}

function passes({ model, who }: View, cell: ModelCell, filter: ListFilter): boolean {
  return (
    (filter.kind ?? cell.kind) === cell.kind &&
    (filter.visibility ?? cell.visibility) === cell.visibility &&
    (filter.created_by === undefined || filter.created_by === cell.owner) &&
    (filter.ids?.some((n) => pick(model, n) === cell) ?? true) &&
    (filter.path_prefix === undefined || cell.path?.startsWith(filter.path_prefix) === true) &&
    (filter.shared_with === undefined || (!isOwner(who, cell) && admitting(model, who, cell).length > 0))
  )
}

/** All pages of a list. They must be in order; each but the last is full, and none after a cursor is empty. */
async function listed({ stage, model, who }: View, input: Record<string, unknown>): Promise<Row[]> {
  const rows: Row[] = []
  let cursor: string | null = null
  do {
    const page: Page = await stage.call(who, 'cell_list', { ...input, cursor })
    if (page.next_cursor !== null)
      assert.equal(page.cells.length, input.limit, 'a page before the last is full')
    if (cursor !== null) assert.notEqual(page.cells.length, 0, 'a cursor leads to a row')
    if (input.shared_with)
      for (const { id } of page.cells) {
        const cell = model.cells.find((one) => one.id === id) as ModelCell
        assert.deepEqual(ids(page.cell_grants?.[id] ?? []), ids(admitting(model, who, cell)), 'cell_grants')
      }
    rows.push(...page.cells)
    cursor = page.next_cursor
  } while (cursor !== null)
  const key = (row: Row): string =>
    input.path_prefix !== undefined
      ? (row.path as string)
      : `${input.order_by === 'updated_at' ? (row.updated_at ?? row.created_at) : row.created_at} ${row.id}`
  const keys = rows.map(key)
  const ordered = [...new Set(keys)].sort()
  assert.deepEqual(keys, input.order_direction === 'asc' ? ordered : ordered.reverse(), 'the order of a list')
  return rows
}

/** Checks what every method returns for one cell. */
export async function cellAgrees(view: View, cell: ModelCell): Promise<void> {
  const { stage, model, who } = view
  const { id } = cell
  const [view_, edit, manage] = [mayView, mayEdit, mayManage].map((may) => may(model, who, cell))
  const got = await Promise.all([
    stage.call<Got>(who, 'cell_get', { id }).catch(refused),
    reasonOf(stage.call(who, 'cell_update', { cell_id: id, data_patch: {} })),
    reasonOf(stage.call(who, 'cell_audit_list', { cell_id: id })),
    stage.call<{ grants: { id: string }[] }>(who, 'cell_grant_list', { cell_id: id }).catch(refused),
    ...edgesOf(view, cell).map(({ list }) => list().catch(refused)),
  ])
  const [bundle, update, audit, grants, ...edges] = got
  assert.deepEqual(bundle && shown(bundle), view_ ? expected(view, cell) : null, `cell_get ${id}`)
  const answered = { view: bundle !== null, edit: update === 'ok', manage: grants !== null }
  await explainedAlike(view, cell, answered)
  if (who === null) {
    for (const one of [update, audit]) assert.equal(one, 'authentication_required')
    for (const one of [grants, ...edges]) assert.equal(one, null)
    return
  }
  assert.equal(update, outcome(edit as boolean), `cell_update ${id}`)
  const mayAudit = manage || (cell.isDeleted && isAdmin(model, who))
  assert.equal(audit, outcome(mayAudit as boolean), `cell_audit_list ${id}`)
  assert.deepEqual(grants && ids(grants.grants), manage ? ids(cell.grants) : null, `cell_grant_list ${id}`)
  for (const [index, { name, should }] of edgesOf(view, cell).entries())
    assert.deepEqual(edges[index], view_ ? should : null, `${name} ${id}`)
}

type Explained = {
  verdict: Record<'view' | 'edit' | 'manage', boolean>
  reasons: { tier: string; cell_grant_id: string | null }[]
}

/**
 * `cell_access_explain` must agree with the other methods, both for the caller and for someone who manages the cell.
 */
async function explainedAlike(
  { stage, model, who }: View,
  cell: ModelCell,
  answered: Explained['verdict'],
): Promise<void> {
  const explain = (by: Who): Promise<Explained | null> =>
    stage
      .call<Explained>(by, 'cell_access_explain', {
        cell_id: cell.id,
        actor_id: who === null ? null : stage.actorIds[who],
      })
      .catch(refused)
  const manager = stage.actorIds.findIndex((_, actor) => mayManage(model, actor, cell))
  const own = await explain(who)
  const told = manager < 0 ? null : await explain(manager)
  assert.equal(own !== null, who !== null && answered.view, `cell_access_explain ${cell.id}`)
  for (const one of [own, told]) {
    if (one === null) continue
    assert.deepEqual(one.verdict, answered, `the verdict on ${cell.id}`)
    const tiers = ['view', 'edit', 'manage'].filter((_, rank, all) =>
      one.reasons.some(({ tier }) => all.indexOf(tier) >= rank),
    )
    assert.deepEqual(
      tiers,
      Object.keys(answered).filter((tier) => answered[tier as 'view']),
      'its reasons',
    )
    assert.deepEqual(
      one.reasons.flatMap(({ cell_grant_id }) => cell_grant_id ?? []).sort(),
      ids(admitting(model, who, cell)),
      'the grants among its reasons',
    )
  }
}

/** Null for an expected refusal, whose reason is compared elsewhere. */
function refused(error: { data?: { reason?: string } }): null {
  if (!['cell_not_found', 'authentication_required'].includes(error.data?.reason ?? '')) throw error
  return null
}

type Got = {
  cell: {
    version: number
    visibility: string
    path: string | null
    kind: string | null
    created_by: string | null
  }
  fields: Edge[]
  items: Edge[]
  fields_truncated: boolean
  items_truncated: boolean
  can_edit: boolean
  can_grant: boolean
}

const shown = ({ cell, fields, items, ...flags }: Got) => {
  const { version, visibility, path, kind, created_by } = cell
  return {
    ...{ version, visibility, path, kind, created_by, ...flags },
    fields: fields.map(({ name, target_id }) => `${name} ${target_id}`),
    items: items.map(({ position, child_id }) => `${position} ${child_id}`),
  }
}

function expected({ model, who, stage }: View, cell: ModelCell): ReturnType<typeof shown> {
  const { version, visibility, path, kind, owner } = cell
  const bundle = (edges: ReadonlyMap<string, ModelCell>): string[] =>
    visibleEdges(model, who, edges).map(([key, far]) => `${key} ${far.id}`)
  return {
    ...{ version, visibility, path, kind },
    created_by: owner === null ? null : (stage.actorIds[owner] as string),
    fields_truncated: false,
    items_truncated: false,
    can_edit: mayEdit(model, who, cell),
    can_grant: mayManage(model, who, cell),
    fields: bundle(cell.fields),
    items: bundle(cell.items),
  }
}

/** The four lists of the edges of a cell, actual and expected. */
function edgesOf({ model, who, stage }: View, cell: ModelCell) {
  const kinds = [
    { method: 'cell_field_list', what: 'fields', from: 'source_id', key: 'name', to: 'target_id' },
    { method: 'cell_item_list', what: 'items', from: 'parent_id', key: 'position', to: 'child_id' },
  ] as const
  return kinds.flatMap(({ method, what, from, key, to }) => {
    const list = async (input: object): Promise<string[]> => {
      const rows: Edge[] = []
      let cursor: string | null = null
      do {
        const page: Record<string, unknown> = await stage.call(who, method, { ...input, limit: 2, cursor })
        rows.push(...(page[what] as Edge[]))
        cursor = page.next_cursor as string | null
        if (cursor !== null) assert.equal((page[what] as Edge[]).length, 2, 'a page before the last is full')
      } while (cursor !== null)
      return rows.map((row) => `${row[from]} ${row[key]} ${row[to]}`)
    }
    const forward = visibleEdges(model, who, cell[what]).map(([at, far]) => `${cell.id} ${at} ${far.id}`)
    const reverse = model.cells
      .filter((near) => mayView(model, who, near))
      .flatMap((near) =>
        [...near[what]].flatMap(([at, far]) => (far === cell ? [`${near.id} ${at} ${far.id}`] : [])),
      )
    return [
      { name: `${method} from`, list: () => list({ [from]: cell.id }), should: forward },
      // Ordered by timestamps that the model does not know; the tests of the lists check the order.
      {
        name: `${method} to`,
        list: async () => (await list({ [to]: cell.id })).sort(),
        should: reverse.sort(),
      },
    ]
  })
}

import {
  isAdmin,
  isOwner,
  keyOf,
  type Model,
  type ModelCell,
  mayEdit,
  mayManage,
  mayView,
  type Principal,
  type Who,
} from './access.ts'
import { applyClone, cloneSize } from './clones.ts'
import type { Move } from './moves.ts'
import { endHeld, insertHeld, orphan } from './rows.ts'
import type { Stage } from './stage.ts'
import { isTwice, newCell, pick } from './world.ts'

/** A call, the outcome that the rules of its method give, and what it changes in the model. */
export type Plan = {
  method: string
  params: object | ((stage: Stage) => object)
  /** `ok` or the reason of the refusal. */
  outcome: string
  /** What the result must contain. */
  answer?: object
  apply?(answer: never, stage: Stage): void | Promise<void>
}
/** A change that happens without a call. */
export type Event = { happen(stage: Stage): Promise<unknown> }

/** No move creates or clones beyond this number of cells, so that each step stays small. */
const cellsMax = 9

type Rules = { [K in Move['what']]: (model: Model, who: Who, move: Move<K>) => Plan | Event | undefined }

export function planOf(model: Model, who: Who, move: Move): Plan | Event | undefined {
  const plan = (rules[move.what] as (model: Model, who: Who, move: Move) => Plan | Event | undefined)(
    model,
    who,
    move,
  )
  return plan && 'outcome' in plan && who === null ? { ...plan, outcome: 'authentication_required' } : plan
}

const found = (is: boolean): string => (is ? 'ok' : 'cell_not_found')
const live = ({ cells }: Model): ModelCell[] => cells.filter(({ isDeleted }) => !isDeleted)
const isTaken = (model: Model, path: string | null | undefined): boolean =>
  typeof path === 'string' && live(model).some((cell) => cell.path === path)
/** An edge that leads to a deleted cell does not count. */
const edgeAt = (edges: Map<string, ModelCell>, key: string): ModelCell | undefined => {
  const far = edges.get(key)
  return far?.isDeleted ? undefined : far
}

const rules: Rules = {
  create(model, who, { visibility, kind, path }) {
    if (live(model).length >= cellsMax) return undefined
    const outcome = path === null || isAdmin(model, who) ? undefined : 'cell_path_admin_only'
    return {
      method: 'cell_create',
      params: { data: {}, visibility, kind, path },
      outcome: outcome ?? (isTaken(model, path) ? 'cell_path_taken' : 'ok'),
      apply({ cell }: { cell: { id: string } }) {
        model.cells.push({ ...newCell(cell.id), owner: who, visibility, kind, path })
      },
    }
  },

  update(model, who, { cell: n, patch, visibility, path, isStale }) {
    const cell = pick(model, n)
    const isChange =
      patch !== undefined ||
      (visibility ?? cell.visibility) !== cell.visibility ||
      (path !== undefined && path !== cell.path)
    const outcome = () => {
      if (typeof path === 'string' && !isAdmin(model, who)) return 'cell_path_admin_only'
      if (!mayEdit(model, who, cell)) return 'cell_not_found'
      if (visibility !== undefined && visibility !== cell.visibility && !mayManage(model, who, cell))
        return 'cell_visibility_manage_only'
      if (path !== undefined && path !== cell.path && !isAdmin(model, who)) return 'cell_path_admin_only'
      if (isStale) return 'cell_version_conflict'
      return path !== cell.path && isTaken(model, path) ? 'cell_path_taken' : 'ok'
    }
    return {
      method: 'cell_update',
      params: {
        cell_id: cell.id,
        // Differs from the stored value, and from one that a clone copied, so that it is always a change.
        ...(patch !== undefined && { data_patch: { value: `${patch} ${cell.id} ${cell.version}` } }),
        ...(visibility !== undefined && { visibility }),
        ...(path !== undefined && { path }),
        ...(isStale && { expected_version: cell.version + 1 }),
      },
      outcome: outcome(),
      apply() {
        if (!isChange) return
        cell.version++
        cell.visibility = visibility ?? cell.visibility
        if (path !== undefined) cell.path = path
      },
    }
  },

  delete(model, who, { cell: n }) {
    const cell = pick(model, n)
    return {
      method: 'cell_delete',
      params: { cell_id: cell.id },
      outcome: found(mayEdit(model, who, cell)),
      apply() {
        cell.isDeleted = true
      },
    }
  },

  clone(model, who, { cell: n, deep }) {
    const cell = pick(model, n)
    const count = cloneSize(model, who, cell, deep)
    if (live(model).length + count > cellsMax + 3) return undefined
    return {
      method: 'cell_clone',
      params: { source_id: cell.id, deep },
      outcome: found(mayView(model, who, cell)),
      answer: { cloned_count: count },
      apply: ({ cell: made }: { cell: { id: string } }, stage) =>
        applyClone(stage, model, who, { source: cell, copy_id: made.id, deep }),
    }
  },

  setField(model, who, { cell: n, key, far: m }) {
    const [cell, far] = [pick(model, n), pick(model, m)]
    return {
      method: 'cell_field_set',
      params: { source_id: cell.id, name: key, target_id: far.id },
      outcome: found(mayEdit(model, who, cell) && mayView(model, who, far)),
      apply() {
        cell.fields.set(key, far)
      },
    }
  },

  deleteField(model, who, { cell: n, key }) {
    const cell = pick(model, n)
    return {
      method: 'cell_field_delete',
      params: { source_id: cell.id, name: key },
      outcome: found(mayEdit(model, who, cell)),
      answer: { deleted: edgeAt(cell.fields, key) !== undefined },
      apply() {
        cell.fields.delete(key)
      },
    }
  },

  insertItem(model, who, { cell: n, key, far: m }) {
    const [cell, far] = [pick(model, n), pick(model, m)]
    const may = mayEdit(model, who, cell) && mayView(model, who, far)
    return {
      method: 'cell_item_insert',
      params: { parent_id: cell.id, child_id: far.id, position: key },
      outcome: may && edgeAt(cell.items, key) ? 'cell_item_position_taken' : found(may),
      apply() {
        cell.items.set(key, far)
      },
    }
  },

  moveItem(model, who, { cell: n, key, to }) {
    const cell = pick(model, n)
    const far = edgeAt(cell.items, key)
    const may = mayEdit(model, who, cell) && far !== undefined && mayView(model, who, far)
    return {
      method: 'cell_item_move',
      params: { parent_id: cell.id, position: key, new_position: to },
      outcome: may && key !== to && edgeAt(cell.items, to) ? 'cell_item_position_taken' : found(may),
      apply() {
        cell.items.delete(key)
        cell.items.set(to, far as ModelCell)
      },
    }
  },

  deleteItem(model, who, { cell: n, key }) {
    const cell = pick(model, n)
    return {
      method: 'cell_item_delete',
      params: { parent_id: cell.id, position: key },
      outcome: found(mayEdit(model, who, cell)),
      answer: { deleted: edgeAt(cell.items, key) !== undefined },
      apply() {
        cell.items.delete(key)
      },
    }
  },

  grant(model, who, { cell: n, level, to }) {
    const cell = pick(model, n)
    const refusal = 'actor' in to && isOwner(to.actor, cell) ? 'cell_grant_principal_is_owner' : 'ok'
    return {
      method: 'cell_grant_create',
      params: ({ actorIds }) => ({ cell_id: cell.id, level, principal: principalInput(to, actorIds) }),
      outcome: mayManage(model, who, cell) ? refusal : 'cell_not_found',
      apply({ grant }: { grant: { id: string } }) {
        const kept = cell.grants.find((one) => keyOf(one.to) === keyOf(to))
        if (kept) kept.level = level
        else cell.grants.push({ id: grant.id, level, to })
      },
    }
  },

  revoke(model, who, { cell: n, nth }) {
    const cell = pick(model, n)
    const grant = cell.grants[nth % cell.grants.length]
    if (!grant) return undefined
    const isGrantee = 'actor' in grant.to && grant.to.actor === who && !cell.isDeleted
    const without = { ...cell, grants: cell.grants.filter((one) => one !== grant) }
    return {
      method: 'cell_grant_revoke',
      params: { grant_id: grant.id },
      outcome: mayManage(model, who, cell) || isGrantee ? 'ok' : 'cell_grant_not_found',
      answer: { still_admitted: mayView(model, who, without) },
      apply() {
        cell.grants = without.grants
      },
    }
  },

  holdRole(model, _who, { held }) {
    if (isTwice(model, held)) return undefined
    return {
      async happen({ test, actorIds }) {
        model.held.push({ ...held })
        await insertHeld(test.service.app.db, actorIds[held.actor] as string, held)
      },
    }
  },

  endRole(model, _who, { nth }) {
    const held = model.held[nth]
    if (!held || held.lasts === 'revoked' || held.lasts === 'closed') return undefined
    return {
      async happen({ test, actorIds }) {
        held.lasts = 'revoked'
        await endHeld(test.service.app.db, actorIds[held.actor] as string, held)
      },
    }
  },

  orphan(model, _who, { cell: n }) {
    const cell = pick(model, n)
    return {
      async happen({ test }) {
        cell.owner = null
        await orphan(test.service.app.db, cell)
      },
    }
  },
}

/** A principal in the form that the methods take. */
const principalInput = (to: Principal, actorIds: readonly string[]): object =>
  'actor' in to ? { actor_id: actorIds[to.actor] } : { role: to.role, scope_id: to.scope }

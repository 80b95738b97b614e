/**
 * The access rule of cells, written as sets and quantifiers over a world in memory, without SQL. Actors are
 * numbered; null is the anonymous caller.
 */

/** A role grant. Per actor, role and scope at most one has not ended; an expired one has not ended. */
export type Held = { actor: number; role: string; scope: string | null; lasts: Lasts }
export type Lasts = 'ever' | 'long' | 'expired' | 'revoked' | 'closed'
export type Principal = { actor: number } | { role: string; scope: string | null }
export type Grant = { id: string; level: 'viewer' | 'editor'; to: Principal }
export type ModelCell = {
  id: string
  owner: number | null
  visibility: 'private' | 'public'
  kind: string | null
  path: string | null
  version: number
  isDeleted: boolean
  /** The seconds of its timestamps; few different values, so that often the ids decide the order. */
  created: number
  updated: number | null
  /** Edges by name or position. An edge that leads to a deleted cell does not exist for any caller. */
  fields: Map<string, ModelCell>
  items: Map<string, ModelCell>
  grants: Grant[]
}
export type Model = { cells: ModelCell[]; held: Held[] }
export type Who = number | null

/** The key under which a grant admits; equal principals have equal keys. */
export const keyOf = (to: Principal): string =>
  'actor' in to ? `a:${to.actor}` : `r:${to.scope ?? '*'}:${to.role}`

const isActive = ({ lasts }: Held): boolean => lasts === 'ever' || lasts === 'long'

function keysOf({ held }: Model, who: Who): Set<string> {
  if (who === null) return new Set()
  const active = held.filter((one) => one.actor === who && isActive(one))
  return new Set([
    `a:${who}`,
    ...active.map(({ role }) => `r:*:${role}`),
    ...active.flatMap(({ role, scope }) => (scope === null ? [] : [`r:${scope}:${role}`])),
  ])
}

export const isAdmin = ({ held }: Model, who: Who): boolean =>
  held.some((one) => one.actor === who && isActive(one) && one.role === 'admin' && one.scope === null)

/** The grants of the cell that admit the caller. */
export function admitting(model: Model, who: Who, { grants }: ModelCell): Grant[] {
  const keys = keysOf(model, who)
  return grants.filter(({ to }) => keys.has(keyOf(to)))
}

export const isOwner = (who: Who, { owner }: ModelCell): boolean => who !== null && owner === who

export function mayView(model: Model, who: Who, cell: ModelCell): boolean {
  if (cell.isDeleted) return false
  if (isAdmin(model, who) || cell.visibility === 'public' || isOwner(who, cell)) return true
  return admitting(model, who, cell).length > 0
}

export function mayEdit(model: Model, who: Who, cell: ModelCell): boolean {
  if (cell.isDeleted) return false
  if (isAdmin(model, who)) return true
  if (cell.owner === null) return false
  return isOwner(who, cell) || admitting(model, who, cell).some(({ level }) => level === 'editor')
}

export const mayManage = (model: Model, who: Who, cell: ModelCell): boolean =>
  !cell.isDeleted && (isAdmin(model, who) || isOwner(who, cell))

/** The edges of a visible cell that the caller may see, in byte order of their keys. */
export const visibleEdges = (
  model: Model,
  who: Who,
  edges: ReadonlyMap<string, ModelCell>,
): [key: string, far: ModelCell][] =>
  [...edges].filter(([, far]) => mayView(model, who, far)).sort(([a], [b]) => (a < b ? -1 : 1))

import { z } from 'zod'
import type { CursorKey } from '../../core/cursor.ts'
import { query } from '../../core/declare.ts'
import { openPage } from '../../core/page.ts'
import { refusal } from '../../errors.ts'
import { holdsAdmin } from '../../roles/admin.ts'
import { issue } from '../../wire/issues.ts'
import { CursorText, Int, Uuid } from '../../wire/types.ts'
import { Cell, type CellHead, Kind, lastHead, Path, Visibility, withoutLast } from '../cells.ts'
import { CellGrant } from '../grants/grants.ts'
import { type ListInput, mayBeUngranted, type Way } from './branches.ts'
import { behind, pathKey } from './cursor.ts'
import { type ListPage, listStatement } from './page.ts'

const idsMax = 200
const limitMax = 200
const limitDefault = 50
const manyRoles = 8

const input = z.strictObject({
  ids: z.array(Uuid).max(idsMax).optional(),
  kind: Kind.optional(),
  visibility: Visibility.optional(),
  created_by: Uuid.optional(),
  path_prefix: Path.optional(),
  shared_with: z.literal('me').optional(),
  order_by: z.enum(['created_at', 'updated_at']).optional(),
  order_direction: z.enum(['asc', 'desc']).optional(),
  limit: Int(1, limitMax).nullish().describe(`The number of \`ids\`, else ${limitDefault}, if left out.`),
  cursor: CursorText,
})

const orderRule = 'Leave it out: with `path_prefix` the order is that of the paths.'

export const cell_list = query({
  doc: 'The visible cells that pass every filter, newest first, or by path with `path_prefix`. A page has at most 8 MiB of data. `shared_with`: cells shared with the caller; `cell_grants` has their grants.',
  auth: { account: 'optional', actor: 'optional' },
  replica: true,
  rate_limit: 'ip',
  rate_limit_group: 'cell_read',
  input,
  output: z.object({
    cells: z.array(Cell),
    next_cursor: z.string().nullable(),
    cell_grants: z.record(Uuid, z.array(CellGrant)).optional(),
  }),
  json_text: true,
  errors: ['cell_list_created_by_requires_auth', 'cell_list_shared_with_requires_auth'],
  refine({ cursor, limit, ...sent }, { actor, app, fail }) {
    const { kind, visibility, created_by, path_prefix, shared_with } = sent
    const isByPath = path_prefix !== undefined
    if (isByPath && sent.order_by !== undefined)
      throw refusal('invalid_params', { issues: [issue(['order_by'], 'invalid_value', orderRule)] })
    const order_by: ListInput['order_by'] = isByPath ? 'path' : (sent.order_by ?? 'created_at')
    const order_direction = sent.order_direction ?? (isByPath ? 'asc' : 'desc')
    const ids = sent.ids && [...new Set(sent.ids)].sort()
    const filters = { ids, kind, visibility, created_by, path_prefix, shared_with }
    const bound = { ...filters, order_by, order_direction, actor_id: actor?.id ?? null }
    const size = { limit: limit ?? (ids?.length || limitDefault) }
    const page = openPage(app, 'cell_list', bound, { ...size, cursor })
    if (!actor && created_by !== undefined) throw fail('cell_list_created_by_requires_auth')
    if (!actor && shared_with !== undefined) throw fail('cell_list_shared_with_requires_auth')
    const list: ListInput = { ...bound, ...size }
    return { list, after: page.after, binding: page.binding }
  },
  async handler({ list, after, binding }, { app, role_grants, db }) {
    const isShared = list.shared_with !== undefined
    // No cell has an empty kind.
    if (list.ids?.length === 0 || list.kind === '')
      return JSON.stringify({ cells: [], next_cursor: null, ...(isShared && { cell_grants: {} }) })
    const start = after && behind(list, after)
    const caller = { isAdmin: holdsAdmin(role_grants), hasManyRoles: role_grants.length > manyRoles }
    const byGrants = role_grants.length > (isShared ? 1 : 0) ? 'heads' : 'all'
    const page = await readPage(
      mayBeUngranted({ ...list, ...caller }) ? list.actor_id : null,
      byGrants,
      (way, tellsGrants) => db.one(listStatement(list, start, { ...caller, tellsGrants }, way)),
    )
    const { cells, grants, last } = page.is_large
      ? whole(await db.rows(listStatement(list, start, caller, 'cut')))
      : withoutNext(page)
    const next_cursor = last ? app.cursors.write(binding, keyOf(list, lastHead(last))) : null
    const shared = isShared ? `,"cell_grants":{${grants ?? ''}}` : ''
    return ['{"cells":[', cells ?? '', `],"next_cursor":${JSON.stringify(next_cursor)}${shared}}`]
  },
})

/** By actor, whether its last page needed grants: if so, reading a page without grants first would waste a statement. */
const needsGrants = new Map<string, boolean>()
const needsGrantsMax = 10_000

/** Nearly always one statement. `actor_id`: set for a caller whose pages may be read without grants. */
async function readPage(
  actor_id: string | null,
  byGrants: Way,
  read: (way: Way, tellsGrants?: boolean) => Promise<ListPage>,
): Promise<ListPage> {
  const known = actor_id === null ? true : needsGrants.get(actor_id)
  let page = await read(known === false ? 'ungranted' : byGrants, known === undefined)
  if (actor_id !== null && page.is_granted !== undefined && page.is_granted !== known) {
    if (needsGrants.size >= needsGrantsMax) needsGrants.clear()
    needsGrants.set(actor_id, page.is_granted)
  }
  if (known === false && page.is_granted) page = await read(byGrants)
  return page.is_short ? await read('all') : page
}

/** The texts of a page; if there is a next page, `last` ends with the last cell of this one. */
type Whole = Record<'cells' | 'grants' | 'last', string | null | undefined>

/** A page that was read cell by cell. Do not search its text: V8 would first flatten the megabytes into one string. */
function whole(rows: ListPage[]): Whole {
  const concat = (texts: (string | null | undefined)[]): string | undefined =>
    texts.reduce<string | undefined>((all, text) => (text ? (all ? `${all},${text}` : text) : all), undefined)
  return {
    cells: concat(rows.map(({ cells }) => cells)),
    grants: concat(rows.map(({ cell_grants }) => cell_grants)),
    last: rows[0]?.has_more ? rows.at(-1)?.cells : undefined,
  }
}

/** Removes the first cell of the next page, which the page read ends with. */
function withoutNext({ cells, cell_grants: grants, has_more }: ListPage): Whole {
  if (!has_more || !cells) return { cells, grants, last: null }
  const { id } = lastHead(cells)
  const kept = withoutLast(cells)
  return { cells: kept, grants: grants?.slice(0, grants.lastIndexOf(`,"${id}":[`)), last: kept }
}

/** Where the page ends, in the order of the list. */
function keyOf(
  { order_by, path_prefix }: ListInput,
  { id, path, created_at, updated_at }: CellHead,
): CursorKey {
  if (path_prefix !== undefined) return pathKey(path_prefix, path as string, id)
  return [order_by === 'created_at' ? created_at : (updated_at ?? created_at), id]
}

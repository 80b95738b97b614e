import { type CallerName, idOf, indexOf } from './world.ts'

/** One call that is compared between the worlds; `params` may depend on the size of the world. */
export type Case = {
  name: string
  method: string
  caller: CallerName | 'anonymous'
  filter: string
  order: string
  /** Page 200 of ten rows; otherwise the first page of fifty. */
  isDeep: boolean
  /** Max ratio to the small world's median. */
  bar: number
  /** Cases with a bar in time: over the bar only above so many milliseconds. */
  targetMs?: number
  params(cells: number): Record<string, unknown>
  /** The call to compare with, in the large world, instead of the same call in the small one. */
  against?: Filter
  /** Changes the world: few rounds, no plan. */
  isWrite?: boolean
  /** The expected refusal. */
  refusal?: string
}

const listCallers = [
  'anonymous',
  'nobody',
  'owner',
  'grants_10',
  'grants_10000',
  'role_holder',
  'scoped_50',
  'admin',
] as const

export type Filter = (cells: number) => Record<string, unknown>
/** Every filter of `cell_list`; a common and a rare value where that matters. */
const filters: Record<string, Filter> = {
  none: () => ({}),
  'kind, common': () => ({ kind: 'note' }),
  'kind, rare': () => ({ kind: 'rare' }),
  'visibility public': () => ({ visibility: 'public' }),
  'visibility private': () => ({ visibility: 'private' }),
  created_by: () => ({ created_by: idOf('actor', indexOf('owner')) }),
  'path_prefix, narrow': () => ({ path_prefix: 'docs/50/' }),
  'path_prefix, wide': () => ({ path_prefix: 'docs/' }),
  'path_prefix, oldest': () => ({ path_prefix: 'archive/' }),
  'path_prefix, private': () => ({ path_prefix: 'docs/', visibility: 'private' }),
  'path_prefix, kind': () => ({ path_prefix: 'docs/', kind: 'note' }),
  'path_prefix, created_by': () => ({ path_prefix: 'docs/', created_by: idOf('actor', indexOf('owner')) }),
  shared_with: () => ({ shared_with: 'me' }),
  ids: (cells) => ({
    ids: Array.from({ length: 50 }, (_, at) => idOf('cell', Math.floor((at * cells) / 50))),
  }),
}
const needsCaller = new Set(['created_by', 'shared_with', 'path_prefix, created_by'])
const orders = {
  created: { order_by: 'created_at' },
  updated: { order_by: 'updated_at' },
  'created asc': { order_by: 'created_at', order_direction: 'asc' },
  'updated asc': { order_by: 'updated_at', order_direction: 'asc' },
  path: {},
  'path desc': { order_direction: 'desc' },
}

/** First page and page 200 for every caller, filter and order; by time ascending only without a filter. */
export function listCases(cells: number): Case[] {
  const found: Case[] = []
  const add = (caller: Case['caller'], filter: string, order: string, isDeep: boolean): void => {
    const params = filters[filter] as Filter
    found.push({
      name: `cell_list ${caller} ${filter} ${order} ${isDeep ? 'page 200' : 'first'}`,
      method: 'cell_list',
      ...{ caller, filter, order, isDeep },
      bar: cells > 1_000_000 ? 5 : 3,
      ...target(caller, filter, order),
      params: (cells) => ({ ...params(cells), ...orders[order as keyof typeof orders] }),
    })
  }
  for (const filter of Object.keys(filters))
    for (const caller of listCallers)
      for (const order of Object.keys(orders))
        for (const isDeep of [false, true]) {
          if (caller === 'anonymous' && needsCaller.has(filter)) continue
          if (order.startsWith('path') !== filter.startsWith('path')) continue
          if (filter !== 'none' && order.endsWith('asc')) continue
          if (filter === 'ids' && isDeep) continue
          add(caller, filter, order, isDeep)
        }
  // All other cells are newer than the ten of this caller, and nearly all of them are hidden.
  for (const filter of ['visibility private', 'shared_with'])
    for (const order of ['created', 'updated']) add('ten_oldest', filter, order, false)
  return found
}

/** Cases whose work may grow with the number of grants. */
function target(caller: string, filter: string, order: string): { targetMs?: number } {
  if (caller !== 'role_holder') return {}
  return { targetMs: filter === 'none' && order.startsWith('created') ? 15 : 1500 }
}

const deepRows = 1990
const stride = 199

/** The cursor after so many rows, a multiple of 199; undefined if the list ends before. */
export async function deepCursor(
  call: (params: object) => Promise<unknown>,
  params: object,
  behind = deepRows,
): Promise<string | undefined> {
  let cursor: string | null | undefined
  for (let row = 0; row < behind; row += stride) {
    const page = (await call({ ...params, limit: stride, ...(cursor && { cursor }) })) as {
      next_cursor: string | null
    }
    cursor = page.next_cursor
    if (cursor === null) return undefined
  }
  return cursor ?? undefined
}

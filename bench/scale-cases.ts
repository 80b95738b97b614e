import { type CallerName, idOf, indexOf } from './world.ts'

/** One call that is compared between the worlds; `params` may depend on the size of the world. */
export type Case = {
  name: string
  method: 'cell_list' | 'cell_get' | 'cell_create'
  caller: CallerName | 'anonymous'
  filter: string
  order: string
  /** Page 200 of ten rows; otherwise the first page of fifty. */
  isDeep: boolean
  /** Most times the small world's median. */
  bar: number
  params(cells: number): Record<string, unknown>
  /** The refusal that is expected instead of an answer. */
  refusal?: string
}

const listCallers = [
  'anonymous',
  'nobody',
  'owner',
  'grants_10',
  'grants_10000',
  'role_holder',
  'admin',
] as const

type Filter = (cells: number) => Record<string, unknown>
/** Every filter of contract 4, section 6.1; a common and a rare value where that matters. */
const filters: Record<string, Filter> = {
  none: () => ({}),
  'kind, common': () => ({ kind: 'note' }),
  'kind, rare': () => ({ kind: 'rare' }),
  'visibility public': () => ({ visibility: 'public' }),
  'visibility private': () => ({ visibility: 'private' }),
  created_by: () => ({ created_by: idOf('actor', indexOf('owner')) }),
  'path_prefix, narrow': () => ({ path_prefix: 'docs/50/' }),
  'path_prefix, wide': () => ({ path_prefix: 'docs/' }),
  shared_with: () => ({ shared_with: 'me' }),
  ids: (cells) => ({
    ids: Array.from({ length: 50 }, (_, at) => idOf('cell', Math.floor((at * cells) / 50))),
  }),
}
const needsCaller = new Set(['created_by', 'shared_with'])
const orders = {
  created: { order_by: 'created_at' },
  updated: { order_by: 'updated_at' },
  'created asc': { order_by: 'created_at', order_direction: 'asc' },
  'updated asc': { order_by: 'updated_at', order_direction: 'asc' },
}

/** First page and page 200 for every caller, filter and order; ascending only without a filter. */
export function cases(): Case[] {
  const found: Case[] = []
  for (const caller of listCallers)
    for (const [filter, params] of Object.entries(filters))
      for (const [order, ordered] of Object.entries(orders))
        for (const isDeep of [false, true]) {
          if (caller === 'anonymous' && needsCaller.has(filter)) continue
          if (filter !== 'none' && order.endsWith('asc')) continue
          if (filter === 'ids' && isDeep) continue
          const name = `cell_list ${caller} ${filter} ${order} ${isDeep ? 'page 200' : 'first'}`
          const all = (cells: number) => ({ ...params(cells), ...ordered })
          found.push({ name, method: 'cell_list', caller, filter, order, isDeep, bar: 3, params: all })
        }
  return found
}

export function pointCases(): Case[] {
  const get = (name: string, caller: Case['caller'], params: Filter, refusal?: string): Case => ({
    name: `cell_get ${name}`,
    method: 'cell_get',
    caller,
    filter: name,
    order: '',
    isDeep: false,
    bar: 1.5,
    params,
    ...(refusal && { refusal }),
  })
  return [
    get('by id, admin', 'admin', () => ({ id: liveCell })),
    get('by path, admin', 'admin', () => ({ path: 'docs/50/50' })),
    get('missing, nobody', 'nobody', () => ({ id: idOf('account', 0) }), 'cell_not_found'),
    get('missing, anonymous', 'anonymous', () => ({ id: idOf('account', 0) }), 'cell_not_found'),
    {
      ...get('', 'owner', () => ({ kind: 'note', data: { label: 'new' } })),
      name: 'cell_create',
      method: 'cell_create',
      filter: '',
    },
  ]
}

/** The first cell, which is not deleted in a world of the default seed; an admin may read it. */
const liveCell = idOf('cell', 0)

const deepRows = 1990
const stride = 199

/** The cursor behind row 1990, or undefined where the list ends before. */
export async function deepCursor(
  call: (params: object) => Promise<unknown>,
  params: object,
): Promise<string | undefined> {
  let cursor: string | null | undefined
  for (let row = 0; row < deepRows; row += stride) {
    const page = (await call({ ...params, limit: stride, ...(cursor && { cursor }) })) as {
      next_cursor: string | null
    }
    cursor = page.next_cursor
    if (cursor === null) return undefined
  }
  return cursor ?? undefined
}

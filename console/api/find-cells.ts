import { cellLabel, soughtMax } from '../copy/cells.ts'
import { call, type Input } from './client.ts'
import { acting } from './session.ts'

export type FoundCell = { id: string; label: string; path: string | null; kind: string | null }
const byPathMax = 8

/**
 * Finds cells by the beginning of their path, whose first slash may be left out. The server searches by nothing else, so
 * words are looked for among the most recently changed cells, which are read once per finder.
 */
export function cellFinder(): (text: string, signal: AbortSignal) => Promise<FoundCell[]> {
  let last: Promise<FoundCell[]> | undefined
  return async (text, signal) => {
    const byPath = (path_prefix: string) => list({ path_prefix, limit: byPathMax }, signal)
    if (text.startsWith('/')) return byPath(text)
    const paths = text ? [byPath(text), byPath(`/${text}`)] : []
    last ??= list({ order_by: 'updated_at', limit: soughtMax }).catch((error) => {
      last = undefined
      throw error
    })
    const [recent, ...found] = await Promise.all([last, ...paths])
    const word = text.toLowerCase()
    const byWord = recent.filter(({ label, path, kind }) =>
      `${label}\n${path ?? ''}\n${kind ?? ''}`.toLowerCase().includes(word),
    )
    const all = [...found.flat(), ...byWord]
    return all.filter(({ id }, index) => all.findIndex((one) => one.id === id) === index)
  }
}

/** Only the names of what is read are kept. */
async function list(input: Input<'cell_list'>, signal?: AbortSignal): Promise<FoundCell[]> {
  const { cells } = await call('cell_list', input, acting.peek(), signal)
  return cells.map((one) => ({ id: one.id, label: cellLabel(one), path: one.path, kind: one.kind }))
}

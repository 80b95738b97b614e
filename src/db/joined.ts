import type { Observer } from '../observe/observer.ts'
import { currentWork, siteOf } from '../observe/work.ts'
import { batched, type Line } from './batched.ts'
import type { Sql } from './sql.ts'

/**
 * A read that shares its statement with all such reads requested in the same event loop turn, by any caller. `nth`,
 * from 1, says to which key a row belongs; a key has at most one row.
 */
export type JoinedRead<K extends readonly (string | null)[], V> = {
  statement(keys: readonly K[]): Sql
  /** Max keys of one statement; with the max size of a row, it bounds the answer on the shared connection. */
  max: number
  /** Never set: it carries the type of a row. */
  row?: V
}

/** Runs joined reads by means of `point`. */
export function joiner(
  point: <T>(query: Sql, shared?: string) => Promise<T[]>,
  { line, observer }: { line: Line; observer: Observer },
) {
  const readers = new WeakMap<object, (key: string) => Promise<unknown>>()
  return <K extends readonly (string | null)[], V>(
    read: JoinedRead<K, V>,
    key: K,
  ): Promise<V | undefined> => {
    const reader = readers.get(read) ?? make(read)
    readers.set(read, reader)
    return reader(JSON.stringify(key)) as Promise<V | undefined>
  }

  function make<K extends readonly (string | null)[], V>(read: JoinedRead<K, V>) {
    // Named after the method that asks first.
    const site = siteOf(currentWork())
    return batched(
      async (texts: string[]) => {
        const keys = texts.map((text) => JSON.parse(text))
        const rows = await point<V & { nth: number }>(read.statement(keys), site)
        return new Map(rows.map((row) => [texts[row.nth - 1] as string, row]))
      },
      { line, watched: { site, observer }, max: read.max },
    )
  }
}

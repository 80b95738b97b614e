import pg from 'pg'
import { expectedColumns } from './migration/expected-columns.ts'
import { whileBuilding } from './migration/indexes.ts'
import { longLock, underLock } from './migration/lock.ts'
import { connect, withClient } from './migration/migrate.ts'
import { type Blocker, watchBlockers } from './migration/patience.ts'
import type { OnProgress } from './migration/runner.ts'
import type { Connection } from './servers/connection.ts'

type Reindexed = { table: string; index: string; before_bytes: number; after_bytes: number }

type ReindexOptions = {
  /** Only the indexes of this table. */
  table?: string | undefined
  onWait: () => void
  /** Called once for each other transaction that stands in the way; a connection of its own looks for them. */
  onBlocked?: (blocker: Blocker) => void
  /** Runs the work on one index, and may show its progress. */
  around: (index: string, work: (onProgress?: OnProgress) => Promise<void>) => Promise<void>
}

/** An index with less unused space than this is left alone: later insertions reuse the space. */
const bloatMin = 0.3
const lookEveryMs = 1000
/** With fewer pages the estimate is useless, and rebuilding gains nothing. */
const pagesMin = 32

/** Rebuilds the indexes that are much larger than their content, one after another, while the service goes on. */
export async function reindex(
  connection: Connection,
  { table, onWait, onBlocked, around }: ReindexOptions,
): Promise<Reindexed[]> {
  const tables = [...expectedColumns().keys()].filter((name) => table === undefined || name === table)
  return await withClient(connection, async (client) => {
    const done: Reindexed[] = []
    const building = { client, connect: () => connect(connection) }
    const work = async (): Promise<void> => {
      await dropLeftOver(client, tables)
      for (const table of tables) await client.query(`analyze ${pg.escapeIdentifier(table)}`)
      for (const { index, ...about } of await bloatedIndexes(client, tables)) {
        const name = pg.escapeIdentifier(index)
        await around(index, (onProgress) =>
          whileBuilding(building, onProgress, async () => {
            await client.query(`reindex index concurrently ${name}`)
          }),
        )
        const { rows } = await client.query('select pg_relation_size(to_regclass($1))::float8 as bytes', [
          name,
        ])
        done.push({ index, ...about, after_bytes: rows[0].bytes })
      }
    }
    const told = new Set<unknown>()
    const tell = (blocker: Blocker): void => {
      const who = blocker.pid ?? blocker.gid
      if (!told.has(who)) onBlocked?.(blocker)
      told.add(who)
    }
    const watched = async (): Promise<void> => {
      const watch = onBlocked && (await watchBlockers(building, lookEveryMs, tell))
      await work().finally(watch?.end)
    }
    await underLock(client, longLock, watched, { onWait })
    return done
  })
}

/** SQL for the ids of tables and their partitions; `tables` is SQL for an array of tables as `regclass`. */
export const withPartitions = (tables: string): string => `(
  select part.relid from unnest(${tables}) as divided (id)
    cross join lateral (select id as relid union select relid from pg_partition_tree(id)) part)`

/** Drops what an interrupted run left: an invalid new index, or an old one not yet dropped. */
async function dropLeftOver(client: pg.Client, tables: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ index: string }>(
    `select indexrelid::regclass::text as index from pg_index join pg_class c on c.oid = indexrelid
      where not indisvalid and indrelid in ${withPartitions('$1::regclass[]')} and relname ~ '_cc(new|old)[0-9]*$'`,
    [tables],
  )
  for (const { index } of rows) await client.query(`drop index concurrently ${index}`)
}

/**
 * The B-tree indexes with more pages than the mean widths of their columns explain, largest first. Frequent values take
 * less space than the mean, so an index may be more bloated than estimated, never less. Needs fresh statistics.
 */
export async function bloatedIndexes(
  client: pg.Client,
  tables: readonly string[],
  fewest = pagesMin,
): Promise<Omit<Reindexed, 'after_bytes'>[]> {
  const { rows } = await client.query<Omit<Reindexed, 'after_bytes'>>(
    `with sized as (
       select c.relname::text as index, t.relname::text as table, c.relpages,
              c.reltuples * (4 + case when max(s.null_frac) > 0 then 16 else 8 end
                               + 8 * ceil(sum(s.avg_width * (1 - s.null_frac)) / 8)) as bytes,
              coalesce((select option_value::float8 from pg_options_to_table(c.reloptions)
                        where option_name = 'fillfactor'), 90) / 100 as filled
         from pg_index i
         join pg_class c on c.oid = i.indexrelid
         join pg_am on pg_am.oid = c.relam and amname = 'btree'
         join pg_class t on t.oid = i.indrelid
         join pg_attribute a on a.attrelid = i.indexrelid
         left join pg_attribute col on col.attrelid = i.indrelid and col.attnum = i.indkey[a.attnum - 1]
         -- The statistics of an expression are kept under the name of its index.
         left join pg_stats s on s.schemaname = current_schema()
          and (s.tablename, s.attname) = (case when col.attnum is null then c.relname else t.relname end,
                                          coalesce(col.attname, a.attname))
        where i.indrelid in ${withPartitions('$1::regclass[]')} and i.indisvalid and c.relpages >= $2
        group by c.oid, t.relname
       having count(s.attname) = count(*)
     )
     select index, "table", relpages * current_setting('block_size')::float8 as before_bytes from sized
      where relpages * (1 - $3::float8) > 2 + ceil(bytes / (filled * (current_setting('block_size')::float8 - 40)))
      order by relpages desc`,
    [tables, fewest, bloatMin],
  )
  return rows
}

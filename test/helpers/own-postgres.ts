import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { defaultSchema } from '../../src/db/servers/locate.ts'
import { toUrl } from '../../src/testing/cluster.ts'
import { type emptyDatabase, migratedDatabase } from '../fresh-database.ts'

/**
 * A database on the cluster of the test run, by default with all tables, and the settings for a server that uses it.
 */
export async function ownPostgres(
  make: typeof emptyDatabase = migratedDatabase,
): Promise<{ env: Record<string, string>; open(): Promise<pg.Client> }> {
  const database = await make({ schema: defaultSchema })
  onTestFinished(() => database.drop())
  return {
    env: {
      CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }),
      CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
    },
    open: database.open,
  }
}

import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { defaultSchema } from '../../src/db/locate.ts'
import { toUrl } from '../../src/testing/cluster.ts'
import { emptyDatabase } from '../fresh-database.ts'

/** An empty database on the cluster of the test run, and the settings that a server needs to use it. */
export async function ownPostgres(): Promise<{ env: Record<string, string>; open(): Promise<pg.Client> }> {
  const database = await emptyDatabase({ schema: defaultSchema })
  onTestFinished(() => database.drop())
  return {
    env: {
      CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }),
      CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
    },
    open: database.open,
  }
}

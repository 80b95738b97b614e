import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { toUrl } from '../../src/testing/cluster.ts'
import { migratedDatabase } from '../fresh-database.ts'

/** A database on the cluster of the test run, by default with the tables, and the settings that a server needs to use it. */
export async function ownPostgres(
  make = migratedDatabase,
): Promise<{ env: Record<string, string>; open(): Promise<pg.Client> }> {
  const database = await make()
  onTestFinished(() => database.drop())
  return {
    env: { CELLKEEP_DATABASE_URL: toUrl(database.connection), CELLKEEP_COOKIE_KEYS: 'k'.repeat(43) },
    open: database.open,
  }
}

import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../src/embedded/binaries.ts'
import { makeDatabase } from '../src/embedded/making.ts'
import { preparePlace } from '../src/embedded/place.ts'
import { startCluster, type TestCluster } from '../src/testing/cluster.ts'
import { inMemory } from './memory.ts'

const variable = 'CELLKEEP_TEST_KEPT_DATABASE'

/**
 * A database as a first start makes it, not running. A copy takes an eighth of the time of making another; all copies
 * have one system identifier. Undefined outside a test run.
 */
export const keptDatabase = (): string | undefined => process.env[variable]

/** The cluster of a test run, which keeps that database in its directory. */
export async function startKeptCluster(): Promise<TestCluster> {
  const dataDir = await realpath(await mkdtemp(join(inMemory() ?? tmpdir(), 'ck-kept-')))
  const db = join(dataDir, 'db')
  try {
    await makeAnew(dataDir)
    const cluster = await startCluster({
      within: inMemory(),
      from: db,
      settings: { max_prepared_transactions: '4' },
    })
    const kept = join(cluster.connection.host as string, 'kept')
    await copyDirectory(db, kept)
    process.env[variable] = kept
    return cluster
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function makeAnew(dataDir: string): Promise<void> {
  // If the tests run as root, the user of the database must be able to enter.
  await chmod(dataDir, 0o711)
  const place = await preparePlace({ dataDir })
  const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined
  await makeDatabase(place, await findBinaries({ ...place, postgresBin, onNotice: console.warn }))
}

/** Makes a data directory with that database. Outside a test run it does nothing, as the first start makes one. */
export async function furnish(dataDir: string): Promise<void> {
  const kept = keptDatabase()
  if (kept === undefined) return
  await mkdir(dataDir, { mode: 0o700 })
  await copyDirectory(kept, join(dataDir, 'db'))
}

/** Keeps the owners: if the tests run as root, the files belong to the user of the database. */
export const copyDirectory = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to])

import { fileURLToPath } from 'node:url'
import { migratedTemplate, toUrl } from '../src/testing/cluster.ts'
import { startKeptCluster } from './kept-database.ts'
import { bundleProgram } from './program.ts'

/** Starts one cluster and bundles the program for the whole run; the workers find both in their environment. */
export default async function setup(): Promise<() => Promise<void>> {
  const cluster = await startKeptCluster()
  try {
    await migratedTemplate(cluster.connection)
    process.env.CELLKEEP_TEST_PROGRAM = await bundleProgram()
  } catch (error) {
    await cluster.stop()
    throw error
  }
  process.env.CELLKEEP_TEST_DATABASE_URL = toUrl(cluster.connection)
  // Tests start many processes, and each would spend half its time on compiling the sources.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
    new URL('../node_modules/.cache/compiled', import.meta.url),
  )
  return () => cluster.stop()
}

import { migratedTemplate, startCluster, toUrl } from '../src/testing/cluster.ts'

/** One cluster for the whole run; the workers find it through their environment. */
export default async function setup(): Promise<() => Promise<void>> {
  const cluster = await startCluster()
  try {
    await migratedTemplate(cluster.connection)
  } catch (error) {
    await cluster.stop()
    throw error
  }
  process.env.CELLKEEP_TEST_DATABASE_URL = toUrl(cluster.connection)
  return () => cluster.stop()
}

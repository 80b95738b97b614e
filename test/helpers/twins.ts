import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { copyDirectory } from '../kept-database.ts'
import { stoppableCluster } from './stoppable-cluster.ts'

/** A running server, and a standby that waits to be promoted and follows nobody. */
export async function twins(prepare: (url: string) => Promise<void>) {
  const [one, other] = await Promise.all([
    stoppableCluster({ wal_level: 'replica' }),
    stoppableCluster({ wal_level: 'replica' }),
  ])
  await prepare(one.url)
  await Promise.all([one.stop(), other.stop()])
  await rebuild(one, other)
  await Promise.all([one.start(), other.start()])
  return { one, other }
}

type Cluster = Awaited<ReturnType<typeof stoppableCluster>>

/** Makes one a standby of the other; both are stopped. */
export async function rebuild(from: Cluster, to: Cluster): Promise<void> {
  await rm(join(to.dir, 'db'), { recursive: true })
  await copyDirectory(join(from.dir, 'db'), join(to.dir, 'db'))
  await to.demote()
}

/** Runs statements on a server directly, past the service. */
export async function on(url: string, ...texts: string[]): Promise<pg.QueryResult['rows']> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    let rows: pg.QueryResult['rows'] = []
    for (const text of texts) rows = (await client.query(text)).rows
    return rows
  } finally {
    await client.end()
  }
}

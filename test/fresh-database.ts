import pg from 'pg'
import { migrate } from '../src/db/migration/migrate.ts'
import { type Connection, clientConfig } from '../src/db/servers/connection.ts'
import { defaultSchema } from '../src/db/servers/locate.ts'
import { cloneDatabase, sharedCluster } from '../src/testing/cluster.ts'

export type FreshDatabase = {
  connection: Connection
  /** Opens another connection; `drop` closes it. */
  open(): Promise<pg.Client>
  drop(): Promise<void>
}

/** An empty database, for tests of migrations; its clients look into the given schema. */
export async function emptyDatabase(where: Pick<Connection, 'schema'> = {}): Promise<FreshDatabase> {
  const cluster = await sharedCluster()
  const { connection, drop } = await cloneDatabase(cluster.connection, 'template0')
  return withClients({ ...connection, ...where }, drop)
}

/** A copy of the migrated template. */
export async function migratedDatabase(): Promise<FreshDatabase> {
  const cluster = await sharedCluster()
  const { connection, drop } = await cloneDatabase(cluster.connection, cluster.template)
  const located = { ...connection, schema: defaultSchema }
  await migrate(located)
  return withClients(located, drop)
}

/** An empty database made by `create database NAME <options>`, such as another encoding or collation. */
export async function emptyDatabaseWith(name: string, options: string): Promise<FreshDatabase> {
  const { connection } = await sharedCluster()
  await asAdmin(connection, `create database ${name} template template0 ${options}`)
  const drop = () => asAdmin(connection, `drop database if exists ${name} with (force)`)
  return withClients({ ...connection, database: name }, drop)
}

function withClients(connection: Connection, drop: () => Promise<void>): FreshDatabase {
  const clients: pg.Client[] = []
  return {
    connection,
    open: async () => {
      const client = new pg.Client(clientConfig(connection))
      client.on('error', () => undefined)
      await client.connect()
      clients.push(client)
      return client
    },
    drop: async () => {
      await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
      await drop()
    },
  }
}

async function asAdmin(connection: pg.ClientConfig, text: string): Promise<void> {
  const admin = new pg.Client(connection)
  await admin.connect()
  try {
    await admin.query(text)
  } finally {
    await admin.end()
  }
}

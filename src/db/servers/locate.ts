import pg from 'pg'
import {
  connect,
  type Migrated,
  type MigrateOptions,
  migrate,
  migrateOn,
  withClient,
  withoutLimits,
} from '../migration/migrate.ts'
import { migrationNames, refuse } from '../migration/steps.ts'
import type { Connection } from './connection.ts'

/** The schema of a new database, unless a setting names another. */
export const defaultSchema = 'cellkeep'

/**
 * The connection with the schema of the service's tables: the one that is set, else the one that has them already,
 * else the default. Versions without this setting put them where the search path led, mostly into `public`, which is on
 * every path and so comes last.
 */
export async function locate(connection: Connection, wanted: string | null): Promise<Connection> {
  if (connection.schema !== undefined) return connection
  if (wanted !== null) return { ...connection, schema: wanted }
  return await withClient(connection, (client) => found(client, connection))
}

/** Locates the schema and migrates it, on one connection. */
export async function locateMigrated(
  connection: Connection,
  wanted: string | null,
  options: MigrateOptions,
): Promise<Migrated & { connection: Connection }> {
  if (connection.schema !== undefined || wanted !== null) {
    const located = await locate(connection, wanted)
    return { connection: located, ...(await migrate(located, options)) }
  }
  const client = await connect(connection)
  let located: Connection
  try {
    located = await found(client, connection)
    await withoutLimits(client, located.schema)
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
  return { connection: located, ...(await migrateOn(client, located, options)) }
}

async function found(client: pg.Client, connection: Connection): Promise<Connection> {
  const { rows } = await client.query<{ schema: string }>(
    `select nspname as schema from pg_namespace n join pg_class c on c.relnamespace = n.oid
     where c.relname = 'schema_migration' and (nspname = $1 or nspname = any(current_schemas(false)))
       and (select count(*) from pg_attribute
            where attrelid = c.oid and attname in ('name', 'applied_at') and not attisdropped) = 2
     order by nspname = 'public', array_position(current_schemas(false), nspname) nulls last`,
    [defaultSchema],
  )
  for (const { schema } of rows) if (await isOurs(client, schema)) return { ...connection, schema }
  return { ...connection, schema: defaultSchema }
}

/** Another program may have a table of this name too. */
async function isOurs(client: pg.Client, schema: string): Promise<boolean> {
  const table = `${pg.escapeIdentifier(schema)}.schema_migration`
  const { rowCount } = await client
    .query(`select from ${table} where name::text = $1`, [migrationNames()[0]])
    .catch((error: pg.DatabaseError) => {
      if (error.code !== '42501') throw error
      throw refuse(
        'db_permission_denied',
        `The database user may not read schema_migration in the schema ${schema}, so it is unknown whose it is. If it ` +
          'belongs to this service, let its owner give the user its privileges back; otherwise set ' +
          'CELLKEEP_DATABASE_SCHEMA (`database_schema`) to the schema of this service.',
        error,
      )
    })
  return rowCount !== 0
}

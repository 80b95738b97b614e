import type pg from 'pg'
import type { Config } from '../../config/table.ts'

/**
 * How to reach the database, and the schema with the tables of the service; without one, they are wherever the
 * search path of the database user finds them.
 */
export type Connection = pg.ClientConfig & {
  schema?: string | undefined
  /** A URL that bypasses a pooler in transaction mode, for what must outlive a transaction. */
  direct?: string | undefined
}

/** The URL whose sessions keep LISTEN, locks and settings. */
export const directOf = ({ direct, ...connection }: Connection): Connection =>
  direct === undefined ? connection : { schema: connection.schema, connectionString: direct }

/**
 * What the driver needs for a connection in that schema, with more start-up options. Statements find tables of the
 * consumer in `public` too. Options within a URL are kept: the driver would use them instead of ours.
 */
export function clientConfig({ schema, direct: _, ...config }: Connection, options = ''): pg.ClientConfig {
  const path = schema && `-c search_path=${searchPath(schema)}`
  const { connectionString, given } = withoutOptions(config)
  const all = [keptAlive, given, path, reliedOn, options].filter(Boolean).join(' ')
  return { ...config, ...(connectionString && { connectionString }), ...(all && { options: all }) }
}

/**
 * Settings that statements and the parsing of results rely on, whatever the role, database or server sets. `holds` is
 * the condition under which a connection has the setting.
 */
export const relied: Readonly<Record<string, { value: string; holds: string }>> = {
  default_transaction_isolation: { value: 'read committed', holds: `= 'read committed'` },
  datestyle: { value: 'ISO', holds: `like 'ISO,%'` },
  intervalstyle: { value: 'postgres', holds: `= 'postgres'` },
  extra_float_digits: { value: '1', holds: '::int > 0' },
  standard_conforming_strings: { value: 'on', holds: `= 'on'` },
  array_nulls: { value: 'on', holds: `= 'on'` },
  // Names of tables as text are compared with those in the code.
  quote_all_identifiers: { value: 'off', holds: `= 'off'` },
  // Without warnings this process would not notice that a commit did not reach its standby.
  client_min_messages: { value: 'notice', holds: `<> 'error'` },
  // These would cancel lock waits within a statement, and close idle connections.
  lock_timeout: { value: '0', holds: `= '0'` },
  idle_session_timeout: { value: '0', holds: `= '0'` },
}

/**
 * A server ends a session within a minute of a connection that was lost without a sign, rather than after two hours:
 * the node has replaced it, and the old ones would add up. First, so that the options of the URL override it.
 */
const keptAlive = '-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3'

const reliedOn = Object.entries(relied)
  .map(([name, { value }]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  .join(' ')

export const searchPath = (schema: string): string => (schema === 'public' ? schema : `${schema},public`)

function withoutOptions({ connectionString, options }: pg.ClientConfig) {
  const url = connectionString?.includes('options=') ? new URL(connectionString) : undefined
  const given = url?.searchParams.get('options') ?? options
  url?.searchParams.delete('options')
  return { connectionString: url?.href ?? connectionString, given }
}

/**
 * The name of a lock or channel for the service in this schema; such names are shared by the whole database. In
 * `public` it is the bare name, as nodes of versions without schemas use it.
 */
export const nameIn = (schema: string | undefined, name: string): string =>
  schema === undefined || schema === 'public' ? name : `${name}_${schema}`

/** The connection of the configured URLs. */
export const configured = (url: string, direct: string | null): Connection => ({
  connectionString: url,
  ...(direct !== null && { direct }),
})

export type ReplicaOptions = {
  connections: readonly Connection[]
  lagMaxMs: number
  /** Gets `replica_down` while one of them is not used. */
  warnings?: { add(word: 'replica_down'): unknown; delete(word: 'replica_down'): unknown }
}

/** The configured standbys, with the same schema. */
export const replicasOf = (
  { database_replica_urls: urls, replica_lag_max_ms: lagMaxMs }: Config,
  { schema }: Connection,
): ReplicaOptions => ({
  connections: urls.map((connectionString) => ({ connectionString, schema })),
  lagMaxMs,
})

import type pg from 'pg'

/**
 * How to reach the database, and the schema with the tables of the service; without one, they are wherever the
 * search path of the database user finds them.
 */
export type Connection = pg.ClientConfig & { schema?: string | undefined }

/**
 * What the driver needs for a connection in that schema, with more start-up options. Statements find tables of the
 * consumer in `public` too, unless `isAlone`. Options within a URL are kept: the driver would take them in place of
 * ours.
 */
export function clientConfig(
  { schema, ...config }: Connection,
  options = '',
  { isAlone = false } = {},
): pg.ClientConfig {
  const path = schema && `-c search_path=${searchPath(schema, isAlone)}`
  const { connectionString, given } = withoutOptions(config)
  const all = [given, path, options].filter(Boolean).join(' ')
  return { ...config, ...(connectionString && { connectionString }), ...(all && { options: all }) }
}

export const searchPath = (schema: string, isAlone = false): string =>
  isAlone || schema === 'public' ? schema : `${schema},public`

function withoutOptions({ connectionString, options }: pg.ClientConfig) {
  const url = connectionString?.includes('options=') ? new URL(connectionString) : undefined
  const given = url?.searchParams.get('options') ?? options
  url?.searchParams.delete('options')
  return { connectionString: url?.href ?? connectionString, given }
}

/**
 * The name of a lock or channel, which all of a database share, for the service in this schema. In `public` it is
 * the bare name, as nodes of versions without schemas use it.
 */
export const nameIn = (schema: string | undefined, name: string): string =>
  schema === undefined || schema === 'public' ? name : `${name}_${schema}`

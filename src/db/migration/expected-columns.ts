import { join } from 'node:path'
import { StartError } from '../../errors.ts'
import { migrationsDirectory, readOwn } from './steps.ts'

/** Table → its columns. */
export type ExpectedColumns = ReadonlyMap<string, readonly string[]>

/**
 * The columns that this version needs, read from schema.sql; a test keeps that file equal to a freshly
 * migrated database. Throws a StartError for an empty map, which would make every database look ready.
 */
export function expectedColumns(file: string = join(migrationsDirectory, 'schema.sql')): ExpectedColumns {
  const expected = new Map<string, string[]>()
  for (const block of readOwn(file, 'schema_map_empty').matchAll(
    /^create (?:unlogged )?table (\w+) \(\n(.*?)^\)/gms,
  )) {
    const [, table = '', body = ''] = block
    expected.set(
      table,
      [...body.matchAll(/^ {2}"?(\w+)"? /gm)].map(([, column = '']) => column),
    )
  }
  requireColumns(expected)
  return expected
}

/** Throws a StartError if the map has no column. */
export function requireColumns(expected: ExpectedColumns): void {
  if ([...expected.values()].some((columns) => columns.length > 0)) return
  throw new StartError(
    'schema_map_empty',
    'The package lacks the list of expected columns. Install it again.',
    3,
  )
}

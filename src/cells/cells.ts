import { z } from 'zod'
import { columnsOf, type JsonColumns, jsonObject } from '../db/json.ts'
import { brokenConstraint } from '../db/servers/failure.ts'
import type { Sql } from '../db/sql.ts'
import { refusal, type ServiceError } from '../errors.ts'
import type { CellData } from '../registry/hooks.ts'
import { issue } from '../wire/issues.ts'
import { Characters, Uuid } from '../wire/types.ts'
import { dataRule } from './data.ts'

/** Wire form of a cell; exactly these keys. */
export const Cell = z.object({
  id: Uuid,
  kind: z.string().nullable(),
  visibility: z.enum(['private', 'public']),
  path: z.string().nullable(),
  data: z.custom<CellData>().meta({ type: 'object' }),
  version: z.int(),
  created_by: Uuid.nullable(),
  updated_by: Uuid.nullable(),
  created_at: z.string(),
  updated_at: z.string().nullable(),
})
export type Cell = z.output<typeof Cell>

const cellJson: JsonColumns = {
  id: 'word',
  kind: 'text?',
  visibility: 'word',
  path: 'text?',
  version: 'plain',
  created_by: 'word?',
  updated_by: 'word?',
  created_at: 'time',
  updated_at: 'time?',
  // Last, so that the keys before it can be read without parsing it.
  data: 'plain',
}
/** The names of the columns of `cell` that make up its wire form. */
export const cellNames = Object.keys(cellJson)
/** These columns of `cell c`. */
export const cellColumns = columnsOf('c', cellJson)
/** The wire form of the cell with this alias, as JSON text. */
export const cellText = (alias: string): Sql => jsonObject(alias, cellJson)

/** The keys that precede `data` in the text of a cell. */
export type CellHead = Omit<Cell, 'data'>

const between = '},{"id":"'

/**
 * Removes the last of several such texts that are joined by commas. Quotes in strings are escaped and `jsonb` writes a
 * space after each comma, so no other text looks like the border between two cells.
 */
export const withoutLast = (cells: string): string => cells.slice(0, cells.lastIndexOf(between) + 1)

/** The last of such texts, up to its data. */
export function lastHead(cells: string): CellHead {
  const start = cells.lastIndexOf(between) + 1
  const text = cells.slice(start === 0 ? 0 : start + 1, cells.indexOf(',"data":', start))
  return JSON.parse(`${text}}`)
}

export const Visibility = z.enum(['private', 'public'])

export const pathMax = 256
/** Any characters; only admins may set it. */
export const Path = Characters(1, pathMax)
/** Up to 128 characters. The methods refuse the empty kind themselves, with its own reason. */
export const Kind = Characters(0, 128)
export const RoleName = Characters(1, 128)

/** Maps a violated constraint to its refusal; returns any other error unchanged. */
export function cellWriteError(
  error: unknown,
  field: 'data' | 'data_patch' | 'with_data_patch',
): ServiceError | unknown {
  switch (brokenConstraint(error)) {
    case 'cell_path':
      return refusal('cell_path_taken')
    case 'cell_data_text_size':
      return refusal('invalid_params', { issues: [issue([field], 'too_big', dataRule)] })
    case 'cell_created_by_fkey':
    case 'cell_updated_by_fkey':
    case 'cell_usage_account_id_fkey':
      return refusal('account_vanished')
    default:
      return error
  }
}

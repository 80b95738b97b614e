import pg from 'pg'

/** Turns PostgreSQL's `2026-01-02 03:04:05.6+00` into the wire form `2026-01-02T03:04:05.600Z`. */
export function isoTimestamp(text: string): string {
  const fraction = text.slice(19, -3) || '.'
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${fraction.slice(0, 4).padEnd(4, '0')}Z`
}

/** Type parsers for all connections; with them a selected row is already the wire object. */
export const timeTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.TIMESTAMPTZ) return isoTimestamp
    if (oid === pg.types.builtins.INT8) return Number
    return pg.types.getTypeParser(oid, format)
  },
}

import pg from 'pg'

/** PostgreSQL prints `2026-01-02 03:04:05.6+00`; the wire has exactly `2026-01-02T03:04:05.600Z`. */
export function isoTimestamp(text: string): string {
  const fraction = text.slice(19, -3) || '.'
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${fraction.slice(0, 4).padEnd(4, '0')}Z`
}

/** Type parsers of every connection: a selected row *is* the wire object, so no mapper is needed. */
export const timeTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.TIMESTAMPTZ) return isoTimestamp
    if (oid === pg.types.builtins.INT8) return Number
    return pg.types.getTypeParser(oid, format)
  },
}

import type pg from 'pg'
import { StartError } from '../../errors.ts'
import { codeOf } from './failure.ts'
import { Unfit } from './unfit.ts'

/** Why a start or a command got no connection, and what the operator should do. */
export function unreachable(error: unknown): StartError {
  if (error instanceof Unfit)
    return new StartError(
      'db_read_only',
      `The database cannot be written: ${error.message}. Set the URL to the primary, or list all servers in it.`,
      3,
      { cause: error },
    )
  return new StartError(
    'db_unreachable',
    `The database cannot be reached: ${textOf(error)}. ${remedyOf(error)}`,
    3,
    { cause: error },
  )
}

/** What the driver says of a password that is missing or empty. */
const noPassword = /^SASL: .*client password must be/

export const textOf = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string }
  if (message && noPassword.test(message)) return 'the server asks for a password, and the URL has none'
  // A refused connection to several addresses is an AggregateError without a message.
  return message || code || String(error)
}

/** What the operator should check, by the kind of failure. */
function remedyOf(error: unknown): string {
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : ''
  if (code.startsWith('28') || text.startsWith('SASL'))
    return 'Check the user and the password in the URL, and pg_hba.conf of the server.'
  if (code === '3D000') return 'Create the database, or correct its name in the URL.'
  if (code === '42501' && (error as pg.DatabaseError).routine === 'CheckMyDatabase')
    return 'Let an owner of the database run `grant connect on database NAME to USER`.'
  if (code === '55000') return 'Let an administrator run `alter database NAME allow_connections true`.'
  // An unknown setting, one that this user may not change, a bad value, and one without a value.
  if (/^(42704|42501|22...|42601)$/.test(code))
    return 'Correct `options` in the URL. Use PostgreSQL 15 to 18.'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'Check the host in the URL.'
  if (code === '53300') return 'Allow the server and the user more connections, or give each node fewer.'
  if (/certificate|SSL|PEM|, open '/.test(text))
    return 'Check sslmode, sslrootcert, sslcert and sslkey in the URL; docs/operations.md explains them under TLS.'
  return 'Check that the database server is running.'
}

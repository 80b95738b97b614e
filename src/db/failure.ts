import pg from 'pg'
import { refusal, ServiceError } from '../errors.ts'

/** SQLSTATEs and socket errors that mean "the database is not there", whatever was asked of it. */
const unreachable =
  /^(08...|57P0[1235]|53300|ECONN\w+|ENOENT|EPIPE|EACCES|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)$/
const unreachableText =
  /connection terminated|connection error|not queryable|timeout exceeded when trying to connect|timeout expired|read timeout|client was closed|Cannot use a pool after/i

/** SQLSTATEs of a statement or transaction that ran into its time limit. */
const timedOut = new Set(['57014', '25P03', '25P04', '55P03'])

/** SQLSTATE of a write, or of a temporary file of a large sort, for which the disk has no room. */
const diskFull = '53100'

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''

/** True for a deadlock or serialization failure, which one repeat of the transaction settles. */
export const isConflict = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error))

/** True for a statement that was refused because an earlier one had failed in its transaction. */
export const isInAborted = (error: unknown): boolean => codeOf(error) === '25P02'

/** The constraint that a write broke, or undefined: lets a verb answer with its own reason. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('23')) return undefined
  return error.constraint
}

/**
 * The refusal that a database failure stands for (contract 1, section 4.3): `service_unavailable`,
 * `storage_full`, `timeout`, or undefined where the failure is the statement's own.
 */
export function databaseRefusal(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return undefined
  const code = codeOf(error)
  if (code === diskFull) return withCause(refusal('storage_full'), error)
  if (timedOut.has(code)) return withCause(refusal('timeout'), error)
  if (unreachable.test(code) || (error instanceof Error && !code && unreachableText.test(error.message)))
    return withCause(refusal('service_unavailable'), error)
  return undefined
}

/** True where the connection was lost before, so that nothing of the statement was sent. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof Error && /not queryable/.test(error.message)

/**
 * The error without what it may quote of the caller's values: whole rows, parameters, refused texts. Errors go
 * to the log, where passwords and identifiers must not be (contract 1, section 15.4).
 */
export function withoutValues(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError)) return error
  error.detail = undefined
  error.where = undefined
  error.internalQuery = undefined
  // Class 22, data exceptions: the text itself quotes the value.
  if (error.code?.startsWith('22')) error.message = `a value was refused with SQLSTATE ${error.code}`
  Error.captureStackTrace(error, withoutValues)
  return error
}

export function withCause(refused: ServiceError, cause: unknown): ServiceError {
  refused.cause = cause
  return refused
}

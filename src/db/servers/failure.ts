import pg from 'pg'
import { refusal, ServiceError } from '../../errors.ts'

/** SQLSTATEs and socket errors that mean the database is unreachable, whatever the statement was. */
const unreachable =
  /^(08...|57P0[1235]|53300|ECONN\w+|ENOENT|EPIPE|EACCES|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)$/
const unreachableText =
  /connection terminated|connection error|not queryable|timeout expired|read timeout|client was closed/i

/** SQLSTATEs of a statement or transaction that exceeded its time limit. */
const timedOut = new Set(['57014', '25P03', '25P04', '55P03'])

/** SQLSTATE of a transaction that may or may not be committed. */
export const resolutionUnknown = '08007'

/** SQLSTATE for a full disk: a write, or a large sort that needs a temporary file. */
const diskFull = '53100'

export const isDiskFull = (error: unknown): boolean => codeOf(error) === diskFull

/** SQLSTATEs of files that are missing, damaged or unreadable. */
const damage = new Set(['58P01', '58030', 'XX001', 'XX002'])

/** True if the files of the database are at fault, and no statement is. */
export const isDamage = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && damage.has(error.code ?? '')

/** SQLSTATEs of a server that lacks room, memory or rights, or was told to stop, whatever the statement wrote. */
const serverFaults = /^(40...|42501|53...|55...|57...)$/

/** True if the server failed, or was lost; then the rows of the statement may be sound. */
export const isServerFault = (error: unknown): boolean =>
  isUnreachable(error) || isDamage(error) || serverFaults.test(codeOf(error))

/** For a promise that is awaited later: resolves to the error instead of rejecting unhandled. */
export const asError = (error: unknown): Error => error as Error

export const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''

/**
 * Whether a server lets nobody in any more, as it has no free slots, or the password or pg_hba.conf was changed. It
 * still answers on open connections.
 */
export const refusesLogin = (error: unknown): boolean => /^(53300|28...)$/.test(codeOf(error))

/** True if a table, a column or a privilege is missing: the statement is at fault, or the schema is. */
export const lacksSchema = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && ['42P01', '42703', '42501'].includes(error.code ?? '')

/** True for a deadlock or serialization failure: the transaction can be retried. */
export const isConflict = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error))

/** True for a statement refused because an earlier one of its transaction failed. */
export const isInAborted = (error: unknown): boolean => codeOf(error) === '25P02'

/** The constraint that a write violated, or undefined; lets a method answer with its own reason. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('23')) return undefined
  return error.constraint
}

/**
 * Maps a database failure to `service_unavailable`, `storage_full` or `timeout`; undefined if the statement
 * itself is at fault.
 */
export function databaseRefusal(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return undefined
  const code = codeOf(error)
  if (isDiskFull(error)) return withCause(refusal('storage_full'), error)
  if (timedOut.has(code)) return withCause(refusal('timeout'), error)
  if (isUnreachable(error)) return withCause(refusal('service_unavailable'), error)
  return undefined
}

/** True if no server answered, or it went away. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error)
  return unreachable.test(code) || (error instanceof Error && !code && unreachableText.test(error.message))
}

/** True if the connection was lost beforehand, so nothing of the statement was sent. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof Error && /not queryable/.test(error.message)

/**
 * Removes the values that a database error may quote: rows, parameters, refused texts. Errors go to the log,
 * which must not contain passwords or identifiers.
 */
export function withoutValues(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError)) return error
  error.detail = undefined
  error.where = undefined
  error.internalQuery = undefined
  // Class 22, data exceptions: the message itself quotes the value.
  if (error.code?.startsWith('22')) error.message = `a value was refused with SQLSTATE ${error.code}`
  Error.captureStackTrace(error, withoutValues)
  return error
}

export function withCause(refused: ServiceError, cause: unknown): ServiceError {
  refused.cause = cause
  return refused
}

/** What a failed statement rejects with: a refusal, or the error itself without the values it quotes. */
export const refused = (error: unknown): unknown => databaseRefusal(withoutValues(error)) ?? error

/** The functions of PostgreSQL that refuse a writing transaction, or an unlogged table, on a standby. */
const standbyRoutines = new Set(['check_transaction_read_only', 'check_XactReadOnly', 'get_relation_info'])

/** Whether the server refused to write: a standby, or a primary that was replaced. */
export const takesNoWrites = (error: unknown): boolean =>
  error instanceof pg.DatabaseError &&
  (error.code === '25006' || (error.code === '0A000' && standbyRoutines.has(error.routine ?? '')))

/** What a failed statement that writes rejects with. */
export const writeRefused = (error: unknown): unknown =>
  takesNoWrites(error) ? withCause(refusal('service_unavailable'), error) : refused(error)

/** Explains SQLSTATE 25006 to the author of the method. */
export const explainReadOnly = (error: unknown): never => {
  if (!(error instanceof pg.DatabaseError) || error.code !== '25006') throw error
  throw new Error('A query cannot write: declare the method with mutation() instead of query().', {
    cause: error,
  })
}

/** The error of a call that got no connection; each call gets a new error object. */
export function unavailable(error: unknown): ServiceError {
  const refused = databaseRefusal(error) ?? withCause(refusal('service_unavailable'), error)
  refused.outcome = 'never_began'
  return refused
}

/** Why the work may run again on another connection: nothing was done on the first one. */
export type RepeatCause = 'lost' | 'read_only' | 'statement_name'

/** Also undefined if the work may have been carried out, or if no connection was available. */
export function repeatCause(error: unknown): RepeatCause | undefined {
  const known = error instanceof ServiceError
  if (known && (error.outcome || error.data.reason !== 'service_unavailable')) return undefined
  const raw = known ? error.cause : error
  if (takesNoWrites(raw)) return 'read_only'
  if (nameIsLost(raw) || isOutdated(raw)) return 'statement_name'
  if (raw instanceof Error && /read timeout/i.test(raw.message)) return undefined
  return databaseRefusal(raw)?.data.reason === 'service_unavailable' ? 'lost' : undefined
}

/** A prepared statement does not exist, or exists already: a pooler has given us another session. */
export const nameIsLost = (error: unknown): boolean => ['26000', '42P05'].includes(codeOf(error))

/**
 * A prepared statement has other columns now, as after a change of a table. The connection refuses it from then on, so
 * another one takes its place.
 */
export const isOutdated = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'

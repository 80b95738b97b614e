import { databaseRefusal } from '../db/servers/failure.ts'
import { isErrorCode } from '../error-codes.ts'
import { refusal, ServiceError } from '../errors.ts'
import type { Log } from '../log/log.ts'

/**
 * The one error boundary: only `ServiceError` passes. Anything else becomes `internal_error`; its cause goes to
 * the log with the request id and never to the caller.
 */
export function asServiceError(error: unknown, log: Log, request_id: string): ServiceError {
  const known = refusalIn(error)
  if (known && isSendable(known)) {
    if (known.cause !== undefined)
      log.warn({ event: 'refused', request_id, err: known.cause }, `answered ${known.data.reason}`)
    return known
  }
  log.error({ event: 'request_failed', request_id, err: error }, 'a request failed unexpectedly')
  return refusal('internal_error')
}

function refusalIn(error: unknown): ServiceError | undefined {
  try {
    return error instanceof ServiceError ? error : databaseRefusal(error)
  } catch {
    // A handler may throw anything, even what throws when it is read.
    return undefined
  }
}

/** False for an error of a consumer that has no valid code, status or reason, or that JSON cannot represent. */
function isSendable({ code, status, data }: ServiceError): boolean {
  try {
    return (
      isErrorCode(code) && status >= 400 && status <= 599 && isToken(data.reason) && !!JSON.stringify(data)
    )
  } catch {
    return false
  }
}

const isToken = (reason: unknown): boolean => typeof reason === 'string' && /^[a-z][a-z0-9_]*$/.test(reason)

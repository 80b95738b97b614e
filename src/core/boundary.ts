import { databaseRefusal } from '../db/failure.ts'
import { isErrorCode, refusal, ServiceError } from '../errors.ts'
import type { Log } from '../log/log.ts'

/**
 * The one boundary: only our own error class passes; anything else is `internal_error`, whose cause goes
 * to the log with the request id and never to the caller.
 */
export function asServiceError(error: unknown, log: Log, request_id: string): ServiceError {
  const known = error instanceof ServiceError ? error : databaseRefusal(error)
  if (known && isSendable(known)) {
    if (known.cause !== undefined) log.warn({ request_id, err: known.cause }, `answered ${known.data.reason}`)
    return known
  }
  log.error({ request_id, err: error }, 'a request failed unexpectedly')
  return refusal('internal_error')
}

/** False for what a consumer threw beyond contract 1, sections 4.1 and 4.2, and JSON cannot say. */
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

import { databaseRefusal, lacksSchema, withCause } from '../db/servers/failure.ts'
import { isErrorCode } from '../error-codes.ts'
import { refusal, ServiceError } from '../errors.ts'
import type { App } from './app.ts'

/**
 * The one error boundary: only `ServiceError` passes. Anything else becomes `internal_error`; its cause goes to
 * the log with the request id and never to the caller.
 */
export async function asServiceError(
  { log, readiness }: Pick<App, 'log' | 'readiness'>,
  error: unknown,
  request_id: string,
): Promise<ServiceError> {
  const known = await refusalIn(error, readiness)
  if (known && isSendable(known)) {
    if (known.cause !== undefined)
      log.warn({ event: 'refused', request_id, err: known.cause }, `answered ${known.data.reason}`)
    return known
  }
  log.error({ event: 'request_failed', request_id, err: error }, 'a request failed unexpectedly')
  return refusal('internal_error')
}

async function refusalIn(error: unknown, readiness: App['readiness']): Promise<ServiceError | undefined> {
  try {
    if (error instanceof ServiceError) return error
    return databaseRefusal(error) ?? (lacksSchema(error) ? await driftOf(error, readiness) : undefined)
  } catch {
    // A handler may throw anything, even what throws when it is read.
    return undefined
  }
}

/** What needs a missing part of the schema is not at fault. Calls that do not need it go on. */
async function driftOf(error: unknown, readiness: App['readiness']): Promise<ServiceError | undefined> {
  const state = await readiness.check()
  if (state.ready || state.reason !== 'schema_drift') return undefined
  return withCause(refusal('service_unavailable'), error)
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

import { randomInt } from 'node:crypto'
import { codeFor, codeStatus } from './error-codes.ts'
import { type BuiltinReason, catalogue, type Reason } from './reasons.ts'
import { meant } from './wire/closest.ts'
import type { ReasonSpec } from './wire/consumer.ts'

/** `error.data` of an answer: the reason and its further keys. */
export type ErrorData = { reason: string; [key: string]: unknown }

/** Omitted columns are taken from the request. */
type FailureRow = {
  event_type: string
  metadata: Record<string, unknown> | null
  subject: Partial<
    Record<'actor_id' | 'account_id' | 'target_actor_id' | 'target_account_id' | 'ip', string | null>
  >
}

/**
 * The only error class whose content reaches a caller; any other becomes `internal_error`.
 * A consumer throws it with a code of its own from -32099..-32000.
 */
export class ServiceError extends Error {
  readonly code: number
  readonly status: number
  readonly data: ErrorData
  /** Shown to people instead of the fixed text of the code; only reasons of a consumer have it. */
  declare text?: string
  /** The `Set-Cookie` value of a refusal on a REST route. */
  declare cookie?: string
  /** The audit row to write after the transaction has been rolled back. */
  declare failureRow?: FailureRow
  /** True: the transaction commits in spite of this error. */
  declare commits?: true
  /** The transaction never had a connection, or lost it during COMMIT. */
  declare outcome?: 'never_began' | 'unknown'

  constructor(code: number, data: ErrorData, status: number = codeStatus(code)) {
    super(data.reason)
    this.name = 'ServiceError'
    this.code = code
    this.status = status
    this.data = data
  }

  /** The same as `data.reason`; errors of the client have it under this name too. */
  get reason(): string {
    return this.data.reason
  }
}

export function refusal(reason: BuiltinReason, extra?: Record<string, unknown>): ServiceError {
  const { code, status } = catalogue[reason]
  const wait = reason === 'service_unavailable' && { retry_after: randomInt(1, 11) }
  return new ServiceError(code, { reason, ...wait, ...extra }, status)
}

/** The refusal for lack of room. It may soon be gone, so callers wait only a second. */
export const busy = (): ServiceError => refusal('busy', { retry_after: 1 })

/** A copy for each request that one failure concerns: what is added to one must not reach the others. */
export const copyOf = (error: unknown): unknown =>
  error instanceof ServiceError
    ? Object.assign(new ServiceError(error.code, { ...error.data }, error.status), { cause: error.cause })
    : error

/** Whether it is a refusal with one of these reasons. */
export const hasReason = (error: unknown, ...reasons: readonly BuiltinReason[]): error is ServiceError =>
  error instanceof ServiceError && (reasons as readonly string[]).includes(error.data.reason)

/** Whether the process or the machine has too many files open to open another. */
export const lacksDescriptors = (error: unknown): error is NodeJS.ErrnoException =>
  ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')

/** What `invalid_request` names in its `detail`, and the rule that was broken. */
export const requestRules = {
  not_an_object: 'A call is a JSON object.',
  version: '`jsonrpc` is the string `2.0`.',
  id: '`id` is a string or a number; whole numbers are within ±(2^53 − 1).',
  method: '`method` is a string.',
  params: '`params` is an object, or is left out.',
  too_deep: 'Arrays and objects nest at most 100 levels deep.',
  empty_batch: 'A batch has at least one call.',
  batch_too_large: 'A batch has at most 50 calls; none was carried out.',
  batch_not_supported: 'A message of the WebSocket is one call.',
  duplicate_id: 'No other call of the WebSocket that is under way has this `id`.',
  missing_method: 'A GET has the query key `method`.',
  missing_id: 'A GET has the query key `id`.',
  duplicate_query_key: 'A GET has `method`, `id` and `params` once each.',
  get_not_allowed: 'A method with side effects takes POST.',
  idempotency_key: 'The idempotency key is 16 to 64 letters, digits, `-` and `_`.',
  idempotency_not_supported:
    'Only a call of its own to a mutation that needs a credential takes an idempotency key.',
} as const

export const invalidRequest = (detail: keyof typeof requestRules): ServiceError =>
  refusal('invalid_request', { detail })

/** Marks a mutation that found the service unavailable as having written nothing, unless that is unknown. */
export function tellOutcome(error: unknown): unknown {
  if (hasReason(error, 'service_unavailable')) error.data.outcome ??= 'none'
  return error
}

/** Builds the errors of handlers: of a catalogued reason, or of one that the consumer declared. */
export type Refusal = (reason: Reason, extra?: Record<string, unknown>) => ServiceError

export function createRefusal(own: ReadonlyMap<string, ReasonSpec>): Refusal {
  return (reason, extra) => {
    if (Object.hasOwn(catalogue, reason)) return refusal(reason as BuiltinReason, extra)
    const spec = own.get(reason)
    if (!spec)
      throw new TypeError(
        `fail("${reason}"): there is no such reason${meant(reason, [...Object.keys(catalogue), ...own.keys()])}`,
      )
    const error = new ServiceError(codeFor(spec.status), { ...extra, reason }, spec.status)
    error.text = spec.message
    return error
  }
}

/** Why a process or command cannot start; `message` tells the operator what to do. Never sent to clients. */
export class StartError extends Error {
  readonly reason: string
  /** 75 data dir locked, 78 configuration, 3 database or schema, 1 anything else. */
  readonly exitCode: number

  constructor(reason: string, message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StartError'
    this.reason = reason
    this.exitCode = exitCode
  }
}

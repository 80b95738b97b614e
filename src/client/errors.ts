import type { Reason } from '../reasons.ts'

/** Reasons that any call may fail with, besides those that its method lists: of its request, its caller, the service. */
export type CommonReason = Extract<
  Reason,
  | 'forbidden_origin'
  | 'payload_too_large'
  | 'batch_answer_too_large'
  | 'method_not_found'
  | 'invalid_params'
  | 'authentication_required'
  | 'account_vanished'
  | 'credential_type_required'
  | 'token_scope_required'
  | 'second_factor_enrolment_required'
  | 'fresh_authentication_required'
  | 'insufficient_permissions'
  | 'actor_required'
  | 'actor_not_on_account'
  | 'no_actors_on_account'
  | 'rate_limited'
  | 'idempotency_key_reused'
  | 'idempotency_replayed'
  | 'busy'
  | 'storage_full'
  | 'service_unavailable'
  | 'shutting_down'
  | 'timeout'
  | 'internal_error'
>

type Issues = { path: unknown[]; message: string }[]

/** A refused call. Switch on `reason`; `data` holds the fields that docs/errors.md lists for it. */
export class CellkeepError<R extends string = string> extends Error {
  readonly reason: R
  /** The HTTP status; 0 over a socket, and when nothing was received. */
  readonly status: number
  readonly data: Record<string, unknown>

  /** `call` is the method or route; the message begins with it. */
  constructor(call: string, reason: R, status: number, data: Record<string, unknown>) {
    const detail =
      data.detail ||
      ((data.issues ?? []) as Issues)
        .map(({ path, message }) => (path.length ? `${path.join('.')}: ${message}` : message))
        .join('; ')
    super(`${call}: ${reason}${detail && `: ${detail}`}`)
    this.name = 'CellkeepError'
    this.reason = reason
    this.status = status
    this.data = data
  }
}

/**
 * No answer of the service: the network failed, the call was aborted or timed out, or something in between sent an
 * answer of its own, such as the 502 page of a proxy. A mutation may or may not have been carried out.
 */
export class TransportError extends CellkeepError<'transport_failed'> {
  /** The beginning of what was received instead of an answer. */
  readonly text: string

  constructor(call: string, { status, text, retry_after, cause }: Answer) {
    const detail = status ? `status ${status}, no answer of cellkeep` : String(cause)
    super(call, 'transport_failed', status, { detail, retry_after })
    this.name = 'TransportError'
    this.text = text.slice(0, 500)
    this.cause = cause
  }
}

/** What came back, as JSON; without an answer of the service `reply` is undefined, and `cause` may say why. */
export type Answer = {
  status: number
  text: string
  retry_after?: string | null
  reply?: unknown
  cause?: unknown
}

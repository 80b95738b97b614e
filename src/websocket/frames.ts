import type { App } from '../core/app.ts'
import { invalidRequest, refusal, type ServiceError } from '../errors.ts'
import { type Id, isObject, parseText, type RpcCall, readCall } from '../http/jsonrpc.ts'
import type { Notification } from '../notifications.ts'
import { issue } from '../wire/issues.ts'
import type { Bound } from './bound.ts'

/** What one message of a client asks for. */
type Frame =
  | { kind: 'request'; call: RpcCall; mayHoldBadText: boolean }
  | { kind: 'cancel'; request_id: string | number }
  | { kind: 'refused'; id: Id; error: ServiceError }
  /** An unknown notification, or a reply although the server never sends requests. Ignored. */
  | { kind: 'nothing' }

const nothing: Frame = { kind: 'nothing' }

/** Parses one message; `text` is null for a binary one. */
export function readFrame(text: string | null): Frame {
  const parsed = parseText(text)
  if ('refused' in parsed) return { kind: 'refused', id: parsed.id, error: parsed.refused }
  const { value } = parsed
  if (Array.isArray(value)) return { kind: 'refused', id: null, error: invalidRequest('batch_not_supported') }
  if (isObject(value)) {
    if (!Object.hasOwn(value, 'method') && (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')))
      return nothing
    if (!Object.hasOwn(value, 'id')) return cancelOf(value)
  }
  const call = readCall(value)
  if ('refused' in call) return { kind: 'refused', id: call.id, error: call.refused }
  return { kind: 'request', call, mayHoldBadText: parsed.mayHold }
}

function cancelOf({ jsonrpc, method, params }: Record<string, unknown>): Frame {
  if (jsonrpc !== '2.0' || method !== 'cancel' || !isObject(params)) return nothing
  const { request_id } = params
  if (typeof request_id !== 'string' && typeof request_id !== 'number') return nothing
  return { kind: 'cancel', request_id }
}

/** The error of a `heartbeat` with params; it takes none. */
export function heartbeatIssue(params: unknown): ServiceError | undefined {
  const [unknown] = Object.keys(params ?? {})
  if (unknown === undefined) return undefined
  return refusal('invalid_params', { issues: [issue([unknown], 'unrecognized_keys')] })
}

/** Encoded notifications, shared by all sockets that receive them. */
const frames = new WeakMap<Notification, Uint8Array>()

export function notificationFrame(notification: Notification): Uint8Array {
  const known = frames.get(notification)
  if (known) return known
  const { method, params } = notification
  const made = Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params }))
  frames.set(notification, made)
  return made
}

/** The params of a message, with the default actor if its method takes one and it names none. */
export function withActor(
  { actions }: Pick<App, 'actions'>,
  { actor_id }: Bound,
  { method, params }: RpcCall,
): unknown {
  const takesActor = actions.get(method)?.auth.actor !== 'none'
  if (actor_id === null || !takesActor || Object.hasOwn(params ?? {}, 'acting')) return params
  return { ...(params as object | undefined), acting: actor_id }
}

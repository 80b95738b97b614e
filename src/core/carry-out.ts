import { tellOutcome } from '../errors.ts'
import { since } from '../observe/observer.ts'
import type { App } from './app.ts'
import { asServiceError } from './boundary.ts'
import { type Call, dispatch } from './dispatch.ts'

/** The way a call arrived: by HTTP, alone or in a batch; by WebSocket; or through `service.call`. */
export type CallSurface = 'http' | 'batch' | 'ws' | 'call'

/** Dispatches one call, counted and timed; rejects with `ServiceError` only. */
export async function carryOut<T>(
  app: App,
  surface: CallSurface,
  call: Call,
  finish: (result: unknown) => T,
): Promise<T> {
  const { observer } = app
  const action = app.actions.get(call.method)
  const method = action ? call.method : 'unknown'
  call.trace.rpc_method = method
  const run = (): Promise<T> => dispatch(app, call, finish)
  const began = performance.now()
  let reason = 'ok'
  try {
    return await (observer.tracer?.span(`rpc ${method}`, { 'rpc.method': method }, run) ?? run())
  } catch (error) {
    const known = await asServiceError(app, error, call.request_id)
    if (action?.side_effects) tellOutcome(known)
    reason = known.data.reason
    throw known
  } finally {
    observer.count('rpc_requests_total', method, reason, surface)
    observer.observe('rpc_duration_seconds', since(began), method)
  }
}

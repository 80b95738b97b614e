import type { Caller, Carriers } from '../auth/caller.ts'
import { requireFresh } from '../auth/fresh.ts'
import type { JoinedRead, ReadOnly } from '../db/db.ts'
import type { Sql } from '../db/sql.ts'
import { invalidRequest, refusal, tellOutcome } from '../errors.ts'
import type { Gate } from '../limits/gate.ts'
import { crowdOf } from '../limits/limiters.ts'
import { since } from '../observe/observer.ts'
import type { RequestFields } from '../observe/work.ts'
import { badTextIssue, type Issue, toIssues } from '../wire/issues.ts'
import { isText, JsonText } from '../wire/json-text.ts'
import { withRules } from '../wire/rules.ts'
import type { App } from './app.ts'
import { asServiceError } from './boundary.ts'
import { guardCredential, guardRole, guardScope, resolveActor } from './guards.ts'
import { checkKey, once } from './idempotency.ts'
import type { WiredMethod } from './method.ts'
import { callerSubject, mutate, type Work } from './mutate.ts'

/** One RPC call from any transport: HTTP POST or GET, a batch entry, a WebSocket message, `service.call`. */
export type Call = {
  method: string
  /** Undefined: absent. */
  params: unknown
  /** Set when GET params could not be parsed; reported like a schema failure, after the guards. */
  paramsIssue?: Issue
  /** False when the raw text proves that no string is ill-formed, so the params need no walk. */
  mayHoldBadText: boolean
  viaGet: boolean
  /** As sent; undefined: none. */
  idempotency_key?: unknown
  carriers: Carriers
  ip: string
  request_id: string
  /** The WebSocket message of this call; the notifications it causes on its own socket follow its reply. */
  message?: Message
  /** Filled in for the log line of the request. */
  trace: RequestFields
}

/** The hooks of a call that came over a WebSocket. */
export type Message = {
  /** Throws unless the caller is the one who opened the socket; null when the credential is gone. */
  admit(caller: Caller | null): void
  /** Called just before the handler; throws when the request was cancelled. */
  begin(): void
}

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

/**
 * The only way to a handler: the guards run in the order below, from coarse to fine. `finish` turns the result
 * into the answer. It runs inside the transaction, so a mutation whose result cannot be sent is rolled back.
 */
async function dispatch<T>(app: App, call: Call, finish: (result: unknown) => T): Promise<T> {
  // 1. the method exists and is wired
  const action = app.actions.get(call.method)
  if (!action) throw refusal('method_not_found')
  // 2. GET never mutates, and a key fits what is called
  if (call.viaGet && action.side_effects) throw invalidRequest('get_not_allowed')
  const { idempotency_key: key } = call
  if (key !== undefined) checkKey(key, action)

  // 3. credential presence, 4. its type, 5. its scope, strength and freshness
  const { auth } = action
  const isPublic = auth.account === 'none'
  const { message } = call
  const presented =
    isPublic && !message
      ? null
      : await app.callers.read({ carriers: call.carriers, withActors: auth.actor !== 'none', ip: call.ip })
  message?.admit(presented)
  const caller = isPublic ? null : presented
  if (caller) call.trace.account_id = caller.account.id
  guardCredential(auth, caller, action)
  if (auth.fresh && caller) await requireFresh(app, app.db.point, caller)

  // 6. the acting actor
  const actor = resolveActor(auth, caller, actingOf(call.params))

  // 7. its role
  guardRole(auth, actor?.role_grants ?? [])

  // 8. the input, and with it the scope of the role
  const context = contextOf(app, call, caller, actor)
  const sent = parse(action, call, context)
  const input = action.refine ? refined(action, sent, context) : sent

  // 9. the limiters
  await charge(app, action, call, caller)

  // 10. the handler, a mutation inside its transaction; callers take turns for the connections of the pool
  if (!action.event) {
    const turnOf = (): string => caller?.account.id ?? crowdOf(call.ip)
    const replicas = action.replica ? app.db.replicas : undefined
    // The statement that read the credential has taken the fence.
    if (replicas && !caller) await replicas.fence.take()
    message?.begin()
    const db = new GatedReads(replicas?.reads() ?? app.db.readOnly, app.gate, turnOf)
    return finish(await handled(app, action, input, { ...context, db }))
  }
  const mutator = {
    subject: callerSubject(context, call.ip),
    isCaller: true,
    origin: message,
    snapshot: action.snapshot,
    repeat: action.repeat,
  }
  const { event } = action
  const act = (work: Work) => handled(app, action, input, { ...context, ...work })
  return await mutate(app, event, mutator, async (work) => {
    message?.begin()
    if (key === undefined) return finish(await act(work))
    const keyed = { key, action, subject: mutator.subject, input: sent, trace: call.trace }
    return finish(await once(app, work, keyed, () => act(work)))
  })
}

async function handled(app: App, action: WiredMethod, input: unknown, context: object): Promise<unknown> {
  const answer = await action.handler(input as never, context as never)
  const result = action.json_text ? textOf(action, answer) : answer
  app.outputs.check(action, action.method, result)
  return result
}

function textOf({ method }: WiredMethod, answer: unknown): JsonText {
  if (isText(answer)) return new JsonText(answer)
  throw new TypeError(`${method}: with json_text the handler must return a text, or the pieces of one`)
}

const actingOf = (params: unknown): unknown =>
  typeof params === 'object' && params !== null && Object.hasOwn(params, 'acting')
    ? (params as { acting: unknown }).acting
    : undefined

function contextOf(app: App, call: Call, caller: Caller | null, actor: ReturnType<typeof resolveActor>) {
  return {
    app,
    ip: call.ip,
    request_id: call.request_id,
    account: caller?.account ?? null,
    credential: caller?.credential ?? null,
    actor: actor && { id: actor.id, name: actor.name },
    role_grants: actor?.role_grants ?? [],
    fail: app.fail,
  }
}

function parse(action: WiredMethod, call: Call, context: ReturnType<typeof contextOf>): unknown {
  const issues = (found: Issue[]) => refusal('invalid_params', { issues: found })
  if (call.paramsIssue) throw issues([call.paramsIssue])
  const bad = call.mayHoldBadText ? badTextIssue(call.params) : undefined
  if (bad) throw issues([bad])
  const parsed = action.params.safeParse(call.params ?? {}, withRules)
  if (!parsed.success) throw issues(toIssues(parsed.error))
  // The actor is in the context, so `acting` is taken out: handlers record their whole input, and cursors are bound to
  // it.
  const { acting: _, ...input } = parsed.data as Record<string, unknown>
  if (action.isScoped) guardScope(action.auth, context.role_grants, input, action.method)
  return input
}

/** A check that is still running would come too late, so there must be none. */
function refined(action: WiredMethod, sent: unknown, context: object): unknown {
  const input = action.refine?.(sent as never, context as never)
  if (!(input instanceof Promise)) return input
  input.catch(() => {})
  throw new TypeError(`${action.method}: refine must not be asynchronous; await in the handler instead`)
}

/** Charges the IP first. A limit per IP on a method with an optional credential applies to anonymous callers only. */
async function charge(app: App, action: WiredMethod, call: Call, caller: Caller | null): Promise<void> {
  const { rate_limit: axis, rate_limit_group: group = action.method, budget, auth } = action
  if (budget && caller) await app.limiters.checkBudget(budget, caller.account.id)
  if (!axis) return
  if (axis === 'both' && caller) await app.limiters.takeBoth(group, call.ip, caller.account.id)
  else if (axis === 'account' && caller) await app.limiters.take(group, caller.account.id)
  else if (axis === 'ip' && !(auth.account === 'optional' && caller))
    await app.limiters.takeIp(group, call.ip)
}

/** The reads of a query: those that take a pooled connection pass the gate; point reads do not take one. */
class GatedReads implements ReadOnly {
  readonly #db: ReadOnly
  readonly #gate: Gate
  readonly #caller: () => string
  constructor(db: ReadOnly, gate: Gate, caller: () => string) {
    this.#db = db
    this.#gate = gate
    this.#caller = caller
  }
  rows<T>(query: Sql): Promise<T[]> {
    return this.#gate.read(this.#caller(), () => this.#db.rows<T>(query))
  }
  first<T>(query: Sql): Promise<T | undefined> {
    return this.#gate.read(this.#caller(), () => this.#db.first<T>(query))
  }
  one<T>(query: Sql): Promise<T> {
    return this.#gate.read(this.#caller(), () => this.#db.one<T>(query))
  }
  point<T>(query: Sql, shared?: string): Promise<T[]> {
    return this.#db.point<T>(query, shared)
  }
  joined<K extends readonly (string | null)[], V>(read: JoinedRead<K, V>, key: K): Promise<V | undefined> {
    return this.#db.joined(read, key)
  }
}

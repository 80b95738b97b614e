import type { Caller, Carriers } from '../auth/caller.ts'
import type { Credential } from '../auth/identity.ts'
import type { App } from '../core/app.ts'
import { guardStrength, resolveActor } from '../core/guards.ts'
import { busy, hasReason, refusal, type ServiceError } from '../errors.ts'
import { type EdgeReply, type EdgeRequest, type ReplyHeaders, refusalReply } from '../http/exchange.ts'
import type { RequestInfo } from '../http/jsonrpc.ts'
import { issue } from '../wire/issues.ts'
import type { Bound } from './bound.ts'

/** Checks an upgrade: headers, capacity, credential, then the query. Returns a 101 or a refusal, or throws it. */
export async function admitUpgrade(app: App, request: EdgeRequest, info: RequestInfo): Promise<EdgeReply> {
  if (!request.isUpgrade || request.header('upgrade')?.toLowerCase() !== 'websocket')
    return refuse(info, 'upgrade_required', { upgrade: 'websocket', connection: 'upgrade, close' })
  if (!isValid(request)) return refuse(info, 'invalid_upgrade', { 'sec-websocket-version': '13' })
  if (app.hub.isFull()) throw busy()

  const query = new URLSearchParams(request.query)
  const { carriers: sent, ip, request_id } = info
  const caller = await app.callers.read({ carriers: sent, withActors: query.has('acting'), ip })
  // Any token may open a socket: each message is held to its scope.
  if (!caller) throw refusal('authentication_required')
  guardStrength(caller)
  const { account, credential } = caller
  info.trace.account_id = account.id
  const [carriers, actor_id] = [only(sent, credential), defaultActor(query, caller)]
  const opens: Bound = { account_id: account.id, credential, carriers, ip, request_id, actor_id }
  return { status: 101, headers: {}, body: null, opens }
}

/** A refusal whose headers say what the client should ask for. */
function refuse(
  { trace }: RequestInfo,
  reason: 'upgrade_required' | 'invalid_upgrade',
  headers: ReplyHeaders,
): EdgeReply {
  trace.reason = reason
  return refusalReply(reason, headers)
}

/** The header checks of `ws`, made here so that a refusal has our error body instead of its own. */
function isValid({ header, hasBody }: EdgeRequest): boolean {
  const protocols =
    header('sec-websocket-protocol')
      ?.split(',')
      .map((name) => name.trim()) ?? []
  // Some proxies would read a body as frames, others as part of the request.
  if (hasBody || header('transfer-encoding') !== undefined) return false
  return (
    /^[+/0-9A-Za-z]{22}==$/.test(header('sec-websocket-key') ?? '') &&
    header('sec-websocket-version') === '13' &&
    new Set(protocols).size === protocols.length &&
    protocols.every((name) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
  )
}

function only({ cookie, bearer, daemon }: Carriers, { type }: Credential): Carriers {
  if (type === 'session') return { cookie }
  return { cookie: { state: 'none' }, ...(type === 'daemon_token' ? { daemon } : { bearer }) } as Carriers
}

function defaultActor(query: URLSearchParams, caller: Caller): string | null {
  const unknown = [...query.keys()].find((key) => key !== 'acting')
  if (unknown !== undefined) throw badQuery([issue([unknown], 'unrecognized_keys')])
  const [acting, ...more] = query.getAll('acting')
  if (acting === undefined) return null
  if (more.length > 0) throw badQuery([issue(['acting'], 'invalid_type')])
  try {
    return resolveActor({ account: 'required', actor: 'required' }, caller, acting)?.id ?? null
  } catch (error) {
    if (hasReason(error, 'invalid_params')) throw badQuery(error.data.issues)
    throw error
  }
}

const badQuery = (issues: unknown): ServiceError => refusal('invalid_query_params', { issues })

import type { z } from 'zod'
import type { App } from '../core/app.ts'
import { asServiceError } from '../core/boundary.ts'
import { guardCredential } from '../core/guards.ts'
import type { Attempt, Route, RouteHold, RouteLimiters } from '../core/route.ts'
import { refusal, tellOutcome } from '../errors.ts'
import type { Hold, Limiters } from '../limits/limiters.ts'
import { noteRoute } from '../observe/work.ts'
import { badTextIssue, toIssues } from '../wire/issues.ts'
import { withRules } from '../wire/rules.ts'
import {
  type EdgeReply,
  type EdgeRequest,
  emptyReply,
  flatReply,
  jsonReply,
  readJsonText,
  refuseOtherTypes,
  refuseQuery,
  type Sender,
} from './exchange.ts'
import { isObject, parseText, type RequestInfo } from './jsonrpc.ts'

/** The pipeline of a REST route: guards, query, body, handler. No body is read before the guards. */
export async function runRoute(
  app: App,
  route: Route,
  request: EdgeRequest,
  info: RequestInfo,
): Promise<EdgeReply> {
  const { sessionCookie } = app
  const { carriers, ip } = info
  noteRoute()
  try {
    // the credential is present, its type and scope fit
    const caller =
      route.auth.account === 'none' ? null : await app.callers.read({ carriers, withActors: false, ip })
    if (caller) info.trace.account_id = caller.account.id
    const { path, before_enrolment = false } = route
    guardCredential(route.auth, caller, { scope: `surface:${path.slice(1)}`, before_enrolment })

    // the query
    const query = new URLSearchParams(request.query)
    if (!route.anyQuery) refuseQuery(query)

    // the body: content type, JSON, schema; without an input its JSON is ignored
    if (route.method === 'POST' && !route.input) refuseOtherTypes(request)
    const sender = { ip, isKnown: () => caller !== null }
    const input = route.input && (await readInput(app, route.input, request, sender))

    // the handler, which takes its own limiter slots: whether an attempt is charged depends on its outcome
    const context = {
      app,
      attempt: attemptOf(route, app.limiters, ip),
      query,
      carriers,
      flow: app.flowCookie.read(request.header('cookie')),
      ip,
      request_id: info.request_id,
      account: caller?.account ?? null,
      credential: caller?.credential ?? null,
    }
    const reply = await route.handler(input as never, context as never)
    app.outputs.check(route, `${route.method} ${route.path}`, reply.body)
    const headers = { ...reply.headers, ...(reply.cookie && { 'set-cookie': reply.cookie }) }
    if (reply.body === null) return emptyReply(headers)
    return jsonReply(200, JSON.stringify(reply.body), headers)
  } catch (error) {
    const refused = await asServiceError(app, error, info.request_id)
    if (route.method === 'POST') tellOutcome(refused)
    info.trace.reason = refused.data.reason
    const clears = route.alwaysClears && refused.status === 401 && info.carriers.cookie.state !== 'none'
    const cookie = clears ? sessionCookie.clear() : refused.cookie
    return flatReply(refused.status, refused.data, cookie === undefined ? {} : { 'set-cookie': cookie })
  }
}

const attemptOf =
  ({ rate_limit }: Route, limiters: Limiters, ip: string): Attempt =>
  (charged, work) =>
    limiters.attempt(charged, (hold) => work(routeHold(hold, rate_limit, ip)))

const routeHold = (hold: Hold, limiters: RouteLimiters | undefined, ip: string): RouteHold => ({
  ip: async (isCharged) => {
    if (limiters?.ip) await hold.ip(limiters.ip, ip, isCharged)
  },
  account: async (key, isCharged) => {
    if (limiters?.account) await hold.key(limiters.account, key, isCharged)
  },
  also: (limiter, isCharged) => hold.ip(limiter, ip, isCharged),
})

async function readInput(
  { config }: App,
  schema: z.ZodType,
  request: EdgeRequest,
  sender: Sender,
): Promise<unknown> {
  const text = await readJsonText(request, config.body_limit, sender)
  const sent = parseText(text)
  if (!('value' in sent) || !isObject(sent.value)) throw refusal('invalid_json_body')
  const bad = sent.mayHold ? badTextIssue(sent.value) : undefined
  if (bad) throw refusal('invalid_request_body', { issues: [bad] })
  const parsed = schema.safeParse(sent.value, withRules)
  if (!parsed.success) throw refusal('invalid_request_body', { issues: toIssues(parsed.error) })
  return parsed.data
}

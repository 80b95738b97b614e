import { z } from 'zod'
import type { App } from '../core/app.ts'
import { busy, refusal } from '../errors.ts'
import type { EdgeReply, EdgeRequest } from '../http/exchange.ts'
import type { RequestInfo } from '../http/jsonrpc.ts'
import { issue, toIssues } from '../wire/issues.ts'
import { withRules, worded } from '../wire/rules.ts'
import { Uuid } from '../wire/types.ts'
import { type Authority, authorise, authoriseAgain } from './authority.ts'
import { Follower } from './follower.ts'
import { createTail } from './tail.ts'

/** The audit streams of this node: `GET <account path>/audit/stream`, server-sent events. */
export type AuditStreams = {
  open(request: EdgeRequest, info: RequestInfo): Promise<EdgeReply>
  /** Ends every stream with `shutdown` and refuses new ones; resolves when all reading has stopped. */
  end(): Promise<void>
}

export function createAuditStreams(app: App): AuditStreams {
  const tail = createTail(app)
  /** By credential, oldest first. */
  const open = new Map<string, Set<Follower>>()
  let isOver = false

  function follow(info: RequestInfo, authority: Authority) {
    const began = performance.now()
    const key = `${authority.credential.type} ${authority.credential.id}`
    const siblings = open.get(key) ?? new Set<Follower>()
    const follower = new Follower({
      tail,
      clock: app.db.clock,
      authority,
      authoriseAgain: (held) => authoriseAgain(app, info, held),
      onEnd: (reason) => {
        leave?.()
        siblings.delete(follower)
        if (siblings.size === 0) open.delete(key)
        if (!follower.isStarted) return
        const { request_id, ip, trace } = info
        app.observer.count('live_closed_total', 'stream', reason)
        const duration_ms = Math.round(performance.now() - began)
        app.log.info(
          { request_id, account_id: trace.account_id, ip, reason, duration_ms },
          'audit stream ended',
        )
      },
    })
    const leave = app.hub.add(follower.connection)
    if (!leave) {
      follower.body.gone()
      throw busy()
    }
    open.set(key, siblings.add(follower))
    return { follower, siblings }
  }

  function endSurplus(siblings: ReadonlySet<Follower>): void {
    const surplus = siblings.size - app.config.sse_per_credential
    for (const oldest of [...siblings].slice(0, Math.max(0, surplus))) oldest.close('too_many_streams')
  }

  return {
    open: async (request, info) => {
      let query: Query = {}
      const authority = await authorise(app, info, () => {
        query = readQuery(request)
        return query.acting
      })
      const { follower, siblings } = follow(info, authority)
      try {
        // Registered first, then read again: a later loss of authority is signalled, an earlier one is seen here.
        await authoriseAgain(app, info, authority)
        await tail.fresh()
        if (isOver) throw refusal('shutting_down')
      } catch (error) {
        follower.body.gone()
        throw isOver ? refusal('shutting_down') : error
      }
      endSurplus(siblings)
      follower.start(query.after)
      return { status: 200, headers: { ...streamHeaders }, body: follower.body }
    },
    end: async () => {
      isOver = true
      for (const siblings of [...open.values()])
        for (const follower of [...siblings]) follower.close('shutdown')
      await tail.end()
    },
  }
}

const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  vary: 'Cookie, Authorization, Origin',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
}

type Query = { acting?: string | undefined; after?: number | undefined }

/** A `seq` as text. */
const Position = z
  .string()
  .regex(worded(/^\d{1,16}$/, 'The `seq` of a row is required.'))
  .transform(Number)
  .refine(Number.isSafeInteger, { params: { code: 'too_big' } })

const Query = z.strictObject({ acting: Uuid.optional(), after: Position.optional() })

/** The query and the position to resume from. `Last-Event-ID` overrides `after`: reconnecting clients send both. */
function readQuery(request: EdgeRequest): Query {
  const sent = new URLSearchParams(request.query)
  const keys = new Set<string>()
  const twice = [...sent.keys()].find((key) => keys.size === keys.add(key).size)
  if (twice !== undefined) throw refused([issue([twice], 'invalid_value')])
  const query = Query.safeParse(Object.fromEntries(sent), withRules)
  if (!query.success) throw refused(toIssues(query.error))
  const header = request.header('last-event-id')
  if (header === undefined) return query.data
  const last = Position.safeParse(header)
  if (!last.success) throw refused(toIssues(last.error).map((one) => ({ ...one, path: ['Last-Event-ID'] })))
  return { ...query.data, after: last.data }
}

const refused = (issues: ReturnType<typeof toIssues>) => refusal('invalid_query_params', { issues })

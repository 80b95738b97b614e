import { lockWithSession } from '../accounts/locks.ts'
import { randomToken, sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import type { AuthSpec } from '../core/method.ts'
import type { RouteContext } from '../core/route.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { crowdOf } from '../limits/limiters.ts'
import type { SignInMethod } from '../sessions/sessions.ts'

/** The state between two steps of a sign-in: a row, and a cookie that ties it to one browser. */
export type Flow = {
  kind: FlowKind
  account_id: string | null
  /** The session that began the flow, and must finish it. */
  session_id: string | null
  provider: string | null
  intent: string | null
  /** What the finish must match: the challenge of a passkey, or the id of the ticket that named the invite. */
  challenge: string | null
  /** What has been proven already. */
  methods: SignInMethod[] | null
  invite_id: string | null
  /** In seconds, rounded up. */
  age: number
}
export type FlowKind = 'second_factor' | 'passkey' | 'passkey_register' | 'oidc'
export type NewFlow = Pick<Flow, 'kind'> & Partial<Omit<Flow, 'age'>>

/** A sign-in at a provider takes longer, because people go through its pages. */
export const secondsOf = (kind: FlowKind): number => (kind === 'oidc' ? 600 : 300)
const perAccount = 5

/** Begins a flow. With an account, the caller holds its lock, so that no more than five are left. */
export async function beginFlow(
  app: App,
  db: Queryable,
  flow: NewFlow,
): Promise<{ token: string; cookie: string }> {
  const token = randomToken()
  await storeFlow(db, sha256Hex(token), flow)
  return { token, cookie: app.flowCookie.issue(token) }
}

/**
 * Begins a flow in a transaction of its own, when it is the turn of the caller. Refuses if the session that the flow is
 * bound to has ended.
 */
export const openFlow = (app: App, ip: string, flow: NewFlow): Promise<{ token: string; cookie: string }> => {
  const { account_id, session_id = null } = flow
  return app.gate.run(account_id ?? crowdOf(ip), () =>
    app.db.transaction(async (db) => {
      if (account_id) await lockWithSession(db, account_id, session_id)
      return await beginFlow(app, db, flow)
    }),
  )
}

/**
 * Stores a flow under the given id. A flow without a cookie has the id of its session, so that a second one replaces
 * the first.
 */
export async function storeFlow(db: Queryable, id: string, flow: NewFlow): Promise<void> {
  const { kind, account_id = null, session_id = null, provider = null, intent = null } = flow
  const { challenge = null, methods = null, invite_id = null } = flow
  await db.run(sql`
    with older as (
      delete from sign_in_flow where id in (
        select id from sign_in_flow where account_id = ${account_id}::uuid and id <> ${id}
        order by created_at desc, id offset ${sql.raw(perAccount - 1)}
      )
    )
    insert into sign_in_flow
      (id, kind, account_id, session_id, provider, intent, challenge, methods, invite_id, expires_at)
    values (${id}, ${kind}, ${account_id}::uuid, ${session_id}, ${provider}, ${intent}, ${challenge},
      ${methods}::text[], ${invite_id}::uuid, now() + ${secondsOf(kind)}::int * interval '1 second')
    on conflict (id) do update set challenge = excluded.challenge, intent = excluded.intent,
      created_at = excluded.created_at, expires_at = excluded.expires_at`)
}

export const flowColumns = sql.raw(
  `kind, account_id, session_id, provider, intent, challenge, methods, invite_id,
  ceil(extract(epoch from now() - created_at))::int as age`,
)

/** The flow of a cookie's token, as a condition of `sign_in_flow`. */
export const flowOf = (token: string, kind: FlowKind) => sql`
  id = ${sha256Hex(token)} and kind = ${kind} and expires_at > statement_timestamp()`

/** Uses a flow up. The answer is the same whatever is wrong with it. */
export async function takeFlow(db: Queryable, token: string | null, kind: FlowKind): Promise<Flow> {
  const flow =
    token === null
      ? undefined
      : await db.first<Flow>(
          sql`delete from sign_in_flow where ${flowOf(token, kind)} returning ${flowColumns}`,
        )
  if (!flow) throw refusal('flow_expired')
  return flow
}

/** Uses up the flow that a request continues. Its address waits its turn, because another request may hold the flow. */
export const takeOwnFlow = (
  { app, flow, ip }: Pick<RouteContext<AuthSpec>, 'app' | 'flow' | 'ip'>,
  kind: FlowKind,
): Promise<Flow> => app.gate.run(crowdOf(ip), () => takeFlow(app.db, flow, kind))

/**
 * Ends the flows of an account and a TOTP that waits for its first code. Every change of its ways in calls this: a
 * session from before a second factor must not add one of its own. The caller holds the account lock.
 */
export const endFlows = (db: Queryable, account_id: string): Promise<number> =>
  db.run(sql`
    with pending as (
      delete from account_totp where account_id = ${account_id}::uuid and confirmed_at is null
    )
    delete from sign_in_flow where account_id = ${account_id}::uuid`)

import { batched } from '../db/batched.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import type { Observer } from '../observe/observer.ts'
import { activeGrants, holdsAnyOf, keeperAccountId, someActiveGrants } from './active-grant.ts'
import type { CookieReading, SessionCookie } from './cookie.ts'
import type { DaemonTokens } from './daemon-token.ts'
import type { Account, Actor, Credential, RoleGrant } from './identity.ts'
import { sha256Hex, tokenForm } from './secrets.ts'
import { readScope } from './token-scope.ts'

/** The credentials that a request carries: well-formed, not yet looked up. */
export type Carriers = {
  cookie: CookieReading
  bearer?: string
  daemon?: string
}

/** The scheme in any case; the token exactly as issued. */
const bearerForm = /^[Bb][Ee][Aa][Rr][Ee][Rr] (secret_svc_token_[A-Za-z0-9_-]{43})$/

/**
 * Reads the credentials of a request. If it comes from a page in a browser (it has an `Origin` or `Referer`,
 * even an empty one), bearer and daemon token are silently ignored; `discarded` lists them for the debug header.
 */
export function readCarriers(
  header: (name: string) => string | undefined,
  sessionCookie: SessionCookie,
): { carriers: Carriers; discarded: string[] } {
  const cookie = sessionCookie.read(header('cookie'))
  const authorization = header('authorization')
  const daemonHeader = header('x-daemon-token')
  if (authorization === undefined && daemonHeader === undefined)
    return { carriers: { cookie }, discarded: [] }

  if (header('origin') !== undefined || header('referer') !== undefined) {
    const discarded: string[] = []
    if (authorization !== undefined && /^bearer /i.test(authorization))
      discarded.push('bearer_discarded_browser_context')
    if (daemonHeader !== undefined) discarded.push('daemon_token_discarded_browser_context')
    return { carriers: { cookie }, discarded }
  }
  const bearer = bearerForm.exec(authorization ?? '')?.[1]
  const daemon = tokenForm.exec(daemonHeader ?? '')?.[0]
  return { carriers: { cookie, ...(bearer && { bearer }), ...(daemon && { daemon }) }, discarded: [] }
}

/** A live actor of the account with its active grants, oldest actor first. */
export type Candidate = Actor & { role_grants: RoleGrant[] }

export type Caller = {
  account: Account
  credential: Credential
  /** Null unless the actors were requested. */
  candidates: Candidate[] | null
  /** The account holds a role that requires a second factor, and the credential was proven without one. */
  must_enrol: boolean
}

type Asked = { carriers: Carriers; withActors: boolean; ip: string; atOnce?: boolean }
type How = Pick<Asked, 'withActors' | 'atOnce'>

export type CallerReader = {
  /**
   * Credential → account, plus its actors and their active grants if `withActors`, in one statement shared by all
   * requests of this event loop turn, and in one more if the grants are many. Null: no valid credential. Never cached.
   * A valid daemon token takes precedence over a valid session, and a valid session over a bearer token; a bearer token
   * that is not needed is not looked up. `atOnce`: many grants are read out of turn, because a right that may have ended
   * must not last as long as calls of the account hold its places.
   */
  read(asked: Asked): Promise<Caller | null>
}

type CallerReaderDeps = {
  daemon: DaemonTokens | undefined
  /** Runs a read when it is the turn of the account for a connection. */
  inTurn<T>(account_id: string, read: () => Promise<T>): Promise<T>
  /** Called for each use of a token; must not block. */
  onTokenUse(token_id: string, ip: string): void
  /** Roles whose holders need a strong credential. */
  strongRoles: readonly string[]
  observer: Observer
}

type Row = Account & {
  key: string
  expires_at: string | null
  id_of_credential: string
  scope?: unknown
  strong: boolean
  must_enrol?: boolean
  candidates?: Candidate[]
  fence?: number
}

/** The actors of a caller with more grants of one are read alone: other requests share the statement and wait for it. */
const sharedGrantsMax = 64

const candidatesWith = (grants: Sql): Sql => sql`, coalesce((
    select json_agg(json_build_object('id', actor.id, 'name', actor.name, 'role_grants', ${grants})
      order by actor.created_at, actor.id)
    from (
      select id, name, created_at, deleted_at from actor where account_id = account.id offset 0
    ) actor where actor.deleted_at is null
  ), '[]'::json) as candidates`
const candidates = candidatesWith(activeGrants)
const smallCandidates = candidatesWith(someActiveGrants(sharedGrantsMax + 1))
const isLarge = ({ role_grants }: Candidate): boolean => role_grants.length > sharedGrantsMax

const account = sql`account.id, account.username, account.email, account.email_verified, account.created_at`

/**
 * `offset 0` makes it one index probe per key and table. With a plain join the planner may scan both tables
 * whole while they are small, and a cached plan keeps doing so when they have grown. Without statistics it would also
 * find the actors by reading the index of the names of all live ones.
 */
const keyed = (table: Sql, key: Sql, keys: string[], columns: Sql, isLive: Sql, extra: Sql): Sql => sql`
  select asked.key, c.id as id_of_credential, c.expires_at ${columns}, ${account} ${extra}
  from unnest(${keys}::text[]) as asked (key)
    cross join lateral (
      select id, account_id, expires_at ${columns} from ${table} where ${key} = asked.key offset 0
    ) c
    cross join lateral (
      select id, username, email, email_verified, created_at, deleted_at from account
      where id = c.account_id offset 0
    ) account
  where ${isLive} and account.deleted_at is null`

const sessions = (ids: string[], extra: Sql): Sql =>
  keyed(sql`auth_session`, sql`id`, ids, sql`, strong`, sql`c.expires_at > now()`, extra)

const tokens = (hashes: string[], extra: Sql): Sql => {
  const isLive = sql`(c.expires_at is null or c.expires_at > now())`
  return keyed(sql`api_token`, sql`token_hash`, hashes, sql`, scope, strong`, isLive, extra)
}

const keeper = (_keys: string[], extra: Sql): Sql => sql`
  select 'keeper' as key, null as id_of_credential, null as expires_at, true as strong, ${account} ${extra}
  from account where account.id = ${keeperAccountId}`

/** Part of the statement only if the policy names roles, and evaluated only for weak credentials. */
const mustEnrol = (roles: readonly string[]): Sql =>
  sql`, not c.strong and ${holdsAnyOf(sql`account.id`, roles)} as must_enrol`

export function createCallerReader(
  db: Database,
  { daemon, inTurn, onTokenUse, strongRoles, observer }: CallerReaderDeps,
): CallerReader {
  const reader = (query: (keys: string[], extra: Sql) => Sql, policy: Sql) => {
    const load = (extra: Sql) => async (keys: string[]) => {
      const fence = db.replicas?.fence
      const rows = await db.point<Row>(
        query(keys, sql`${policy}${extra}${fence?.column ?? sql.empty}`),
        'caller',
      )
      fence?.note(rows)
      return new Map(rows.map((row) => [row.key, row]))
    }
    const watched = { line: db.line, watched: { site: 'caller', observer } }
    const withoutCandidates = batched(load(sql.empty), watched)
    const withCandidates = batched(load(smallCandidates), watched)
    return async (key: string, { withActors, atOnce }: How): Promise<Row | undefined> => {
      const row = await (withActors ? withCandidates : withoutCandidates)(key)
      if (!row?.candidates?.some(isLarge)) return row
      const readAlone = () => db.readOnly.first<Row>(query([key], sql`${policy}${candidates}`))
      return await (atOnce ? readAlone() : inTurn(row.id, readAlone))
    }
  }
  const policy = strongRoles.length > 0 ? mustEnrol(strongRoles) : sql.empty
  const bySession = reader(sessions, policy)
  const byToken = reader(tokens, policy)
  const byDaemon = reader(keeper, sql.empty)

  return {
    read: async ({ carriers: { cookie, bearer, daemon: presented }, ip, ...how }) => {
      if (presented !== undefined && (await daemon?.holds(presented))) {
        const row = await byDaemon('keeper', how)
        if (row) return toCaller(row, 'daemon_token', { kind: 'full' })
      }
      if (cookie.state === 'good') {
        const row = await bySession(cookie.sessionId, how)
        if (row) return toCaller(row, 'session', { kind: 'full' })
      }
      if (bearer === undefined) return null
      const row = await byToken(sha256Hex(bearer), how)
      const scope = row && readScope(row.scope)
      if (!row || !scope) return null
      onTokenUse(row.id_of_credential, ip)
      return toCaller(row, 'api_token', scope)
    },
  }
}

function toCaller(row: Row, type: Credential['type'], scope: Credential['scope']): Caller {
  const { id, username, email, email_verified, created_at, expires_at, strong, must_enrol = false } = row
  return {
    account: { id, username, email, email_verified, created_at },
    credential: { type, id: row.id_of_credential, scope, expires_at, strong },
    candidates: row.candidates ?? null,
    must_enrol,
  }
}

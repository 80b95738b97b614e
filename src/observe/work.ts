import { AsyncLocalStorage } from 'node:async_hooks'
import { type Observer, since } from './observer.ts'

/** What a request leaves in its log line. */
export type RequestFields = {
  account_id?: string
  rpc_method?: string
  reason?: string
  /** The `Origin` that was refused. */
  origin?: string
  /** The answer repeats that of an earlier call with the same idempotency key. */
  replayed?: true
  /** Milliseconds in which a statement of it ran, and waiting for a connection before them. */
  db_ms?: number
  db_wait_ms?: number
  /** How often its transaction ran, if more than once. */
  attempts?: number
  /** The server that answered its reads; left out if the primary did and there was no choice. */
  target?: 'primary' | 'replica'
}

/** A request, message or job that runs; its statements count as its own. */
export type Work = {
  /** Names its statements: a method, a route, a job. */
  readonly site: string
  readonly fields: RequestFields
  /** It serves a REST route, such as a sign-in, which must not wait for methods that hold the whole pool. */
  isRoute: boolean
  /** How many of its statements are under way, and since when there is one. */
  running: number
  runningSince: number
}

const works = new AsyncLocalStorage<Work>()

export const inWork = <T>({ site, fields }: Pick<Work, 'site' | 'fields'>, run: () => T): T =>
  works.run({ site, fields, isRoute: false, running: 0, runningSince: 0 }, run)
export const currentWork = (): Work | undefined => works.getStore()
export const siteOf = (work: Work | undefined): string => work?.fields.rpc_method ?? work?.site ?? 'other'

export function addTime(work: Work | undefined, field: 'db_ms' | 'db_wait_ms', began: number): void {
  const ms = performance.now() - began
  if (work && ms >= 0.05) work.fields[field] = tenths((work.fields[field] ?? 0) + ms)
}

/** Statements of a request that are sent together count as one, since each waits for those before it. */
function beginTime(work: Work | undefined, now: number): void {
  if (work && work.running++ === 0) work.runningSince = now
}

function endTime(work: Work | undefined): void {
  if (work && --work.running === 0) addTime(work, 'db_ms', work.runningSince)
}

/** A transaction runs again. */
export function noteRepeat(): void {
  const fields = currentWork()?.fields
  if (fields) fields.attempts = (fields.attempts ?? 1) + 1
}

export function noteRoute(): void {
  const work = currentWork()
  if (work) work.isRoute = true
}

export function noteTarget(target: 'primary' | 'replica'): void {
  const fields = currentWork()?.fields
  if (fields) fields.target = target
}

export const tenths = (ms: number): number => Math.round(ms * 10) / 10

type Target = 'primary' | 'replica'

/**
 * Times one statement; call the returned function at its end. `shared`: the name of a statement that many requests
 * share.
 */
export function beginStatement(observer: Observer, shared?: string, target: Target = 'primary'): () => void {
  const began = performance.now()
  const work = shared === undefined ? currentWork() : undefined
  const site = shared ?? siteOf(work)
  const span = shared === undefined ? beginSpan(observer, site, work, target) : undefined
  beginTime(work, began)
  return () => {
    const seconds = since(began)
    observer.observe('db_query_seconds', seconds)
    observer.observe('db_statement_seconds', seconds, site, target)
    endTime(work)
    span?.end()
  }
}

/** Times what one request waits for a statement that it shares with others. */
export function beginShare(observer: Observer, site: string): () => void {
  const work = currentWork()
  const span = beginSpan(observer, site, work)
  beginTime(work, performance.now())
  return () => {
    endTime(work)
    span?.end()
  }
}

const beginSpan = ({ tracer }: Observer, site: string, work: Work | undefined, target: Target = 'primary') =>
  tracer?.begin(`db ${site}`, {
    'db.system.name': 'postgresql',
    'cellkeep.target': target,
    'cellkeep.attempt': work?.fields.attempts ?? 1,
    'cellkeep.wait_ms': work?.fields.db_wait_ms ?? 0,
  })

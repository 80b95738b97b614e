import { type Observer, since } from './observer.ts'
import { addTime, currentWork, siteOf, type Work } from './work.ts'

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
  return () => {
    const seconds = since(began)
    observer.observe('db_query_seconds', seconds)
    observer.observe('db_statement_seconds', seconds, site, target)
    addTime(work, 'db_ms', began)
    span?.end()
  }
}

/** Times what one request waits for a statement that it shares with others. */
export function beginShare(observer: Observer, site: string): () => void {
  const began = performance.now()
  const work = currentWork()
  const span = beginSpan(observer, site, work)
  return () => {
    addTime(work, 'db_ms', began)
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

import { client, type Refusal } from './client.ts'

/** Nothing answers, or nothing that can reach the database. */
const outages = ['transport_failed', 'service_unavailable', 'shutting_down', 'db_unreachable']
export const isOutage = (error: unknown): boolean => outages.includes((error as Refusal | null)?.reason ?? '')

const waiting = new Set<() => void>()

/** Asks every few seconds, while the page is visible, whether the outage is over, and then calls `then` once. */
export async function afterOutage(then: () => void): Promise<void> {
  waiting.add(then)
  if (waiting.size > 1) return
  for (let isOver = false; !isOver; ) {
    // Random, so that pages do not all ask at the same moment.
    await new Promise((done) => setTimeout(done, 3_000 + Math.random() * 2_000))
    if (document.hidden) continue
    const tried = await client.try.account_verify()
    isOver = tried.ok || !isOutage(tried.error)
  }
  const due = [...waiting]
  waiting.clear()
  for (const one of due) one()
}

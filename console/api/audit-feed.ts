import { computed, effect, signal } from '@preact/signals'
import { AuditStreamError, type AuditStreamItem, auditStream } from '../../src/client/audit-stream.ts'
import { client } from './client.ts'
import { server } from './server.ts'
import { acting, loadSession, sessionEnded, signedIn } from './session.ts'

/** A listener that receives the audit log as it is written. */
export type Hearer = {
  item(item: AuditStreamItem): void
  lost?(about: { after: number | null; wait_ms: number }): void
  /** The stream ended for good: nothing comes until somebody listens again. */
  ended?(reason: string): void
}

const hearers = new Set<Hearer>()
let stop: AbortController | undefined
/** Whether the stream is open right now; false while a lost one waits for its next attempt. */
export const isHearing = signal(false)
/** The stream stays open from one admin page to the next. */
const lingerMs = 2_000

/** The one stream of this tab: open while anybody listens. Returns a function that stops listening. */
export function hearAudit(own: Hearer): () => void {
  hearers.add(own)
  if (!stop) void follow()
  return () => {
    hearers.delete(own)
    setTimeout(() => hearers.size === 0 && close(), lingerMs)
  }
}

function close(): void {
  stop?.abort()
  stop = undefined
  isHearing.value = false
}

// Another account, or another acting actor, gets a stream of its own.
const follower = computed(() => `${signedIn.value?.account.id} ${acting.value}`)
effect(() => {
  follower.value
  close()
})

async function follow(): Promise<void> {
  const own = new AbortController()
  stop = own
  const acts = acting.peek()
  try {
    const stream = auditStream(client, {
      path: server.paths.audit_stream,
      signal: own.signal,
      opened: () => void (isHearing.value = true),
      lost: (about) => {
        isHearing.value = false
        for (const one of hearers) one.lost?.(about)
      },
      ...(acts && { acting: acts }),
    })
    for await (const item of stream) for (const one of hearers) one.item(item)
  } catch (error) {
    if (own.signal.aborted) return
    close()
    const reason = error instanceof AuditStreamError ? error.reason : 'transport_failed'
    for (const one of hearers) one.ended?.(reason)
    if (reason === 'revoked' || reason === 'expired') sessionEnded()
    if (reason === 'role_lost') void loadSession()
  }
}

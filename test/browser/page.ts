import { type AuditStreamItem, auditStream } from '../../src/client/audit-stream.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { createLive, type LiveClient, type LiveEvents, type LiveSettings } from '../../src/client/live.ts'

/** What happened on a page, in order: notifications and connection events, or rows of the audit log. */
export type Seen = { event: string; params: unknown }

export type Page = {
  client: Client
  /** Opens a socket with the session of the page; its events go to `seen`. */
  goLive(settings?: LiveSettings): LiveClient
  /** The same with headers, which no browser sends when it opens a socket. */
  goLiveWithToken(token: string): LiveClient
  live?: LiveClient
  /** Follows the audit log, without earlier rows; resolves once the stream is open. */
  follow(): Promise<void>
  seen: Seen[]
}

declare global {
  interface Window {
    openPage(url: string): Page
    page: Page
  }
}

const events: (keyof LiveEvents)[] = [
  'open',
  'lost',
  'closed',
  'role_grant_offer_received',
  'role_grant_offer_accepted',
  'role_grant_revoke',
]

/** The script of each page; the story calls it from outside, as buttons would. */
window.openPage = (url) => {
  const seen: Seen[] = []
  const client = createClient({ url })
  const watch = (live: LiveClient): LiveClient => {
    for (const event of events) live.on(event, (params) => void seen.push({ event, params }))
    page.live = live
    return live
  }
  const page: Page = {
    client,
    seen,
    goLive: (settings) => watch(createLive(client, settings)),
    goLiveWithToken: (token) => watch(createLive({ url, token })),
    follow: () => new Promise((opened) => void follow(client, seen, opened)),
  }
  window.page = page
  return page
}

async function follow(client: Client, seen: Seen[], opened: () => void): Promise<void> {
  for await (const item of auditStream(client, { opened }) as AsyncIterable<AuditStreamItem>)
    seen.push(item.type === 'gap' ? { event: 'gap', params: item } : { event: item.method, params: item })
}

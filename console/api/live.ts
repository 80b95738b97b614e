import { effect, signal } from '@preact/signals'
import { createLive, type Ending, type LiveClient } from '../../src/client/live.ts'
import { shell, words } from '../copy/common.ts'
import { toast } from '../ui/toast.tsx'
import { client, type Name } from './client.ts'
import { queries, spoil } from './query.ts'
import { refreshedBy } from './refresh.ts'
import { server } from './server.ts'
import { acting, loadSession, mustEnrol, sessionEnded, signedIn } from './session.ts'

/** `lost`: it reconnects by itself. Null: this server has no WebSocket, or nobody is signed in. */
export const connection = signal<'open' | 'lost' | Ending | null>(null)

let live: LiveClient | undefined
/** A hidden tab lets its socket go after a while. */
const hiddenMs = 300_000
let hidden: ReturnType<typeof setTimeout> | undefined

/** One socket per visible tab, as the acting actor. */
export function startLive(): void {
  if (!server.features.ws) return
  effect(() => {
    const who = signedIn.value?.account.id
    const actor = acting.value
    close()
    if (who && !mustEnrol.value) open(actor)
  })
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden)
    if (document.hidden) hidden = setTimeout(close, hiddenMs)
    else if (!live && signedIn.value) reconnect()
  })
}

export function reconnect(): void {
  close()
  open(acting.peek())
  void queries.invalidateQueries()
}

function close(): void {
  live?.close()
  live = undefined
  connection.value = null
}

function open(actor: string | null): void {
  const own = createLive(client, { wsPath: server.paths.ws, ...(actor && { acting: actor }) })
  live = own
  own.on('open', ({ again }) => {
    connection.value = 'open'
    if (again) void queries.invalidateQueries()
  })
  own.on('lost', () => {
    connection.value = 'lost'
  })
  own.on('closed', (ending) => {
    if (live !== own) return
    connection.value = ending
    if (ending === 'signed_out') sessionEnded()
  })
  for (const [event, methods] of Object.entries(refreshedBy))
    own.on(event as keyof typeof refreshedBy, () => spoilSoon(methods))
  own.on('role_grant_offer_received', ({ offer }) => void tellOffer(offer.from_actor_id, offer.role))
  own.on('role_grant_offer_retracted', ({ offer }) => toast(shell.offer_taken_back(offer.role)))
  own.on('role_grant_offer_accepted', ({ offer }) => toast(shell.offer_accepted(offer.role)))
  own.on('role_grant_offer_declined', ({ offer }) => toast(shell.offer_declined(offer.role)))
  own.on('role_grant_revoke', ({ role, reason }) => {
    toast(shell.role_ended(role, reason))
    void loadSession()
  })
}

async function tellOffer(from: string, role: string): Promise<void> {
  const tried = await client.try.actor_lookup({ ids: [from] })
  const name = tried.ok ? tried.result.actors[0]?.username : undefined
  toast(shell.offers_you(name ?? words.removed_actor, role))
}

const due = new Set<Name>()
let timer: ReturnType<typeof setTimeout> | undefined
/** No query is read more often than this, whatever happens. */
const pauseMs = 2_000
let last = 0

/** Reads anew what is on screen: at once, or after the pause if there was a change a moment ago. */
export function spoilSoon(methods: readonly Name[]): void {
  for (const method of methods) due.add(method)
  if (timer) return
  timer = setTimeout(
    () => {
      timer = undefined
      last = Date.now()
      spoil(...due)
      due.clear()
    },
    Math.max(0, last + pauseMs - Date.now()),
  )
}

import { effect, signal } from '@preact/signals'
import { createLive, type Ending, type LiveClient } from '../../src/client/live.ts'
import { shell, words } from '../copy/common.ts'
import { checkBuild } from '../lib/new-build.ts'
import { offline } from '../ui/button.tsx'
import { toast } from '../ui/toast.tsx'
import { client } from './client.ts'
import { refreshAll, spoil, spoilSoon } from './query.ts'
import { refreshedBy } from './refresh.ts'
import { server } from './server.ts'
import { acting, loadSession, mustEnrol, sameAccount, sessionEnded, signedIn } from './session.ts'

/** `lost`: it reconnects automatically. Null: this server has no WebSocket, or nobody is signed in. */
export const connection = signal<'open' | 'lost' | Ending | null>(null)

let live: LiveClient | undefined
/** Behind a proxy that lets no socket through, calls still work. */
let wasOpen = false
/** A hidden tab closes its socket after a while. */
const hiddenMs = 300_000
let hidden: ReturnType<typeof setTimeout> | undefined

/** One socket per visible tab, as the acting actor. */
export function startLive(): void {
  if (!server.features.ws) {
    addEventListener('focus', () => void checkBuild())
    return
  }
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
  refreshAll()
}

function close(): void {
  live?.close()
  live = undefined
  connection.value = null
  offline.value = false
}

function open(actor: string | null): void {
  const own = createLive(client, { wsPath: server.paths.ws, ...(actor && { acting: actor }) })
  live = own
  own.on('open', ({ again }) => {
    // The server may have been replaced.
    if (wasOpen) void checkBuild()
    wasOpen = true
    connection.value = 'open'
    offline.value = false
    if (again) refreshAll()
  })
  own.on('lost', ({ code }) => {
    // Another session or token of the account ended.
    if (code === 4006) spoil('account_session_list', 'account_token_list')
    else {
      connection.value = 'lost'
      offline.value = wasOpen && shell.offline
    }
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
  own.on('role_grant_offer_declined', ({ offer }) =>
    toast(shell.offer_declined(offer.role, offer.decline_reason)),
  )
  own.on('role_grant_offer_supersede', ({ offer, reason }) =>
    toast(shell.offer_superseded(offer.role, reason)),
  )
  own.on('role_grant_revoke', ({ role, reason }) => {
    toast(shell.role_ended(role, reason))
    void loadSession()
  })
}

async function tellOffer(from: string, role: string): Promise<void> {
  const isOwn = sameAccount()
  const tried = await client.try.actor_lookup({ ids: [from] })
  if (!isOwn()) return
  const name = tried.ok ? tried.result.actors[0]?.username : undefined
  toast(shell.offers_you(name ?? words.removed_actor, role))
}

import { computed, effect, signal } from '@preact/signals'
import type { z } from 'zod'
import { CellkeepError } from '../../src/client/client.ts'
import type { RoleGrantSummary as GrantSchema } from '../../src/roles/grants.ts'
import { explain, explainRead } from '../copy/errors.ts'
import { draftsAreOf } from '../lib/draft.ts'
import { isSame } from '../lib/json.ts'
import { remembered } from '../lib/remembered.ts'
import { toast } from '../ui/toast.tsx'
import { client, getAccount, type Output } from './client.ts'
import { afterOutage, isOutage } from './outage.ts'

export type RoleGrant = z.output<typeof GrantSchema>
export type Actor = { id: string; name: string }
export type Session = {
  account: Output<'account_verify'>
  /** The acting actor; null: the account has none, or several and none is chosen. */
  actor: Actor | null
  /** All actors of the account. */
  actors: Actor[]
  role_grants: RoleGrant[]
}
/** Nobody is signed in; `isNew`: the server has no account yet. */
export type Nobody = { account: null; isNew: boolean }

/** Undefined until the server has answered. */
export const session = signal<Session | Nobody | undefined>(undefined)
/** True: the session ended while the page was open. */
export const isEnded = signal(false)
/** True: a role requires a second factor, and until there is one only the person's own Security page works. */
export const mustEnrol = signal(false)
/** Set when the server did not answer at all. */
export const unreachable = signal<CellkeepError | null>(null)

export const signedIn = computed(() => (session.value?.account ? (session.value as Session) : null))
/** The account whose answers may be shown; undefined once the session has ended. */
export const reader = computed(() => (isEnded.value ? undefined : signedIn.value?.account.id))
effect(() => draftsAreOf(reader.value))
/**
 * For work that takes a while: whether the same account is still signed in. An ended session counts as the same: the
 * socket may report its end before the call that ended it is answered.
 */
export function sameAccount(): () => boolean {
  const before = signedIn.peek()?.account.id
  return () => before === undefined || before === signedIn.peek()?.account.id
}
const isGlobalAdmin = (grants: readonly RoleGrant[]): boolean =>
  grants.some(({ role, scope_id }) => role === 'admin' && scope_id === null)
export const isAdmin = computed(() => isGlobalAdmin(signedIn.value?.role_grants ?? []))
const actorKept = remembered('actor')
/** The `acting` of calls: only an account with several actors needs it. */
export const acting = computed(() => {
  const { actors = [], actor } = signedIn.value ?? {}
  return actors.length > 1 ? (actor?.id ?? null) : null
})

type Status = { account: Session['account']; actor: Actor | null; role_grants: RoleGrant[] }

/** Counts the requests for the session: only the answer to the last one counts, and the others wait for it. */
let asked = 0
let latest = Promise.resolve()

/**
 * Asks the server who is signed in, and as which actor. `mayStay`: what is on screen stays if the server cannot answer.
 */
export function loadSession(wanted = actorKept.value, mayStay = true): Promise<void> {
  latest = ask(wanted, mayStay, ++asked)
  return latest
}

const statusAs = (actor: string) =>
  getAccount(`/status${actor ? `?acting=${encodeURIComponent(actor)}` : ''}`)

async function ask(wanted: string, mayStay: boolean, own: number): Promise<void> {
  let { status, reply } = await statusAs(wanted)
  if (status === 200 && wanted && !(reply as Status).actor) ({ status, reply } = await statusAs(''))
  if (own !== asked) return latest
  if (status === 401) {
    unreachable.value = null
    session.value = {
      account: null,
      isNew: (reply as { bootstrap_available?: boolean }).bootstrap_available === true,
    }
    return
  }
  if (status !== 200) {
    const { error = 'transport_failed', ...data } = (reply ?? {}) as { error?: string }
    const failure = new CellkeepError('GET /status', error, status, data)
    if (!signedIn.peek()) unreachable.value = failure
    else if (!mayStay) sessionEnded()
    else {
      toast(explainRead(failure))
      if (isOutage(failure)) void afterOutage(reload)
    }
    return
  }
  unreachable.value = null
  const { account, actor, role_grants } = reply as Status
  const actors = await actorsOf(actor)
  if (own !== asked) return latest
  const first = actors[0]
  if (!actor && first) return loadSession(first.id, mayStay)
  isEnded.value = false
  session.value = { account, actor, actors, role_grants }
}

/** The global admins among these actors; each is asked for alone, because no call returns all. */
export async function adminsAmong(actors: readonly Actor[]): Promise<Actor[]> {
  const admins: Actor[] = []
  for (const actor of actors) {
    const { status, reply } = await statusAs(actor.id)
    if (status === 200 && isGlobalAdmin((reply as Status).role_grants)) admins.push(actor)
  }
  return admins
}

const reload = (): void => void loadSession()

/** A call without `acting` is refused with the list of actors if there are several. */
async function actorsOf(actor: Actor | null): Promise<Actor[]> {
  const tried = await client.try.role_grant_offer_list({ limit: 1 })
  if (!tried.ok && tried.error.reason === 'actor_required') return tried.error.data.available as Actor[]
  return actor ? [actor] : []
}

export async function actAs(id: string): Promise<void> {
  actorKept.value = id
  await loadSession(id)
}

/** Tabs tell each other of a sign-in or sign-out: they share the cookie, and so the account. */
const tabs = openChannel()
if (tabs)
  tabs.onmessage = ({ data }) => {
    if (data === 'signed_out') void loadSession(undefined, false)
    if (data === 'signed_in') void loadSession()
  }
export const tellTabs = (what: 'signed_in' | 'signed_out'): void => tabs?.postMessage(what)

/** A browser that keeps no cookies may refuse this too. The page says so after a sign-in, so it must still be drawn. */
function openChannel(): BroadcastChannel | null {
  try {
    return new BroadcastChannel('cellkeep')
  } catch {
    return null
  }
}

/**
 * For browsers whose tabs cannot tell each other, for what other windows did while this one slept, and for roles that
 * were assigned meanwhile, which nothing announces.
 */
addEventListener('focus', lookAgain)

async function lookAgain(): Promise<void> {
  const before = session.peek()
  if (!before) return
  const own = signedIn.peek()
  const { status, reply } = await statusAs(own?.actor?.id ?? '')
  // What was loaded meanwhile may have been read earlier.
  if (before !== session.peek()) return lookAgain()
  if (status === 401) sessionEnded()
  if (status !== 200) return
  const { account, role_grants } = reply as Status
  if (account.id !== own?.account.id) void loadSession(undefined, false)
  else if (!isSame(role_grants, own.role_grants)) void loadSession()
}

/** The session was ended from elsewhere: the page says so in place. */
export function sessionEnded(): void {
  if (signedIn.value) isEnded.value = true
}

/** Nobody is signed in now, whatever a pending request answers. */
export function forgetSession(): void {
  asked++
  latest = Promise.resolve()
  session.value = { account: null, isNew: false }
}

export async function signOut(): Promise<void> {
  try {
    await client.account.logout()
  } catch (error) {
    if (!(error instanceof CellkeepError)) throw error
    if (error.status !== 401) return toast(explain(error))
  }
  tellTabs('signed_out')
  forgetSession()
}

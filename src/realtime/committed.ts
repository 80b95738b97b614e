import type { AuditRow } from '../audit/audit.ts'
import type { CredentialType } from '../auth/identity.ts'
import type { Notification } from '../notifications.ts'
import { parseJson } from '../wire/parse-json.ts'

/** What one committed mutation means for live connections. */
export type Committed = {
  /** In the order in which the mutation sent them. */
  notifications: readonly Notification[]
  closings: readonly Closing[]
  /** Audit rows were written: audit streams have something to read. */
  wroteAudit: boolean
  /** Keys of `login_account` that every node resets if its limiters count in memory. */
  cleared?: readonly string[]
  /** When it was committed, by the clock of the database, if it closes anything. */
  at?: number | undefined
  /** The WebSocket call that caused it, if any: its reply is sent before anything here. */
  origin?: object | undefined
}

/**
 * What a committed change means for live connections.
 * - `credentials`: sockets and streams of the credentials in `ended` close (sockets with 4001); other sockets of the
 *   account close with 4006. `ids` null: all credentials of that type. `rotated`: another one takes its place, so its
 *   sockets close with 4006 too.
 * - `account`: all connections of the account close.
 * - `actor`: its streams are rechecked; sockets stay open, their next message is refused.
 * - `role`: a role that came may ask for a stronger credential, so the streams of the account are rechecked.
 * - `node`: an operator drained or resumed that node, which reads its row again.
 * - `keeper`: everything that a daemon token opened closes, whichever account it acted for.
 */
export type Closing =
  | { kind: 'credentials'; account_id: string; ended: Ended[]; rotated?: true }
  | { kind: 'account'; account_id: string }
  | { kind: 'actor'; actor_id: string }
  | { kind: 'role'; account_id: string }
  | { kind: 'node'; node_id: string }
  | { kind: 'keeper' }

type Ended = { type: CredentialType; ids: string[] | null }
type Judge = (row: AuditRow, metadata: Record<string, unknown>) => Closing | undefined

const credentials = (row: AuditRow, ...ended: Ended[]): Closing => ({
  kind: 'credentials',
  account_id: row.target_account_id as string,
  ended,
})
const oneSession = (row: AuditRow, { session_id }: Record<string, unknown>): Closing =>
  credentials(row, { type: 'session', ids: [session_id as string] })
const bothKinds: Judge = (row) =>
  credentials(row, { type: 'session', ids: null }, { type: 'api_token', ids: null })
const node: Judge = (_row, { node_id }) => ({ kind: 'node', node_id: node_id as string })
const actor: Judge = (row) => ({ kind: 'actor', actor_id: row.target_actor_id as string })

/**
 * Closings derive from the audit rows that a mutation declares, whether or not they could be written. So no method
 * can end a credential and forget the sockets it opened.
 */
const closings: Readonly<Record<string, Judge>> = {
  logout: oneSession,
  session_revoke: (row, metadata) => ({
    ...oneSession(row, metadata),
    ...(metadata.cause === 'rotated' && { rotated: true }),
  }),
  session_revoke_all: (row) => credentials(row, { type: 'session', ids: null }),
  token_revoke: (row, { token_id }) => credentials(row, { type: 'api_token', ids: [token_id as string] }),
  token_revoke_all: (row) => credentials(row, { type: 'api_token', ids: null }),
  password_change: bothKinds,
  password_reset: bothKinds,
  account_secure: bothKinds,
  account_delete: (row) => ({ kind: 'account', account_id: row.target_account_id as string }),
  account_purge: (row) => ({ kind: 'account', account_id: row.target_account_id as string }),
  actor_delete: actor,
  actor_purge: actor,
  node_drain: node,
  node_resume: node,
  role_grant_create: (row) => ({ kind: 'role', account_id: row.target_account_id as string }),
  role_grant_revoke: (row, metadata) => {
    if (metadata.cause === 'keeper_transfer') return { kind: 'keeper' }
    return metadata.role === 'admin' ? actor(row, metadata) : undefined
  },
}
// A map, because a consumer's event may be named like a property of Object.prototype.
const judges = new Map(Object.entries(closings))

/** What the success rows of one mutation close, in the order of the rows. */
export const closingsOf = (rows: readonly AuditRow[]): Closing[] =>
  rows.flatMap((row) => judges.get(row.event_type)?.(row, row.metadata ?? {}) ?? [])

/** What opened a connection. */
export type Opened = { account_id: string; credential: { type: CredentialType; id: string | null } }

/**
 * What closings mean for a connection: `own` if its credential ended, `rotated` if another took its place, `other` if
 * another credential of the account ended. The first of these wins if one commit has several: a login may end two
 * sessions.
 */
export function verdictOf(closings: readonly Closing[], opened: Opened): Verdict | undefined {
  const verdicts = closings.map((closing) => verdict(closing, opened))
  return (['own', 'rotated', 'other'] as const).find((one) => verdicts.includes(one))
}
type Verdict = 'own' | 'rotated' | 'other'

function verdict(closing: Closing, { account_id, credential }: Opened): Verdict | undefined {
  if (closing.kind === 'keeper') return credential.type === 'daemon_token' ? 'own' : undefined
  if (closing.kind !== 'account' && closing.kind !== 'credentials') return undefined
  if (closing.account_id !== account_id) return undefined
  if (closing.kind === 'account') return 'own'
  const isOwn = closing.ended.some(
    ({ type, ids }) => type === credential.type && (ids === null || ids.includes(credential.id as string)),
  )
  if (!isOwn) return 'other'
  return closing.rotated ? 'rotated' : 'own'
}

/** The part of a commit that other nodes hear of; `gap`: too much is queued or in doubt, so recheck everything. */
export type Signal = Pick<Committed, 'notifications' | 'closings' | 'wroteAudit' | 'cleared' | 'at'> & {
  gap?: true
}

/** Max notifications, closings and cleared limiter keys that are queued for other nodes beside those of one commit. */
const heldMax = 1000
/** PostgreSQL accepts less than 8000 bytes per notification. */
const payloadMax = 7_900

/** The number of entries of a signal. */
export const sizeOf = ({ notifications, closings, cleared = [] }: Signal): number =>
  notifications.length + closings.length + cleared.length

/**
 * Merges two signals. Order is kept within each kind; connections cannot see more. `largest` is the size of the largest
 * signal merged so far: a single commit is sent whole, whatever its size.
 */
export function merged(a: Signal | undefined, b: Signal, largest = 0): Signal {
  if (!a) return b
  const notifications = [...a.notifications, ...b.notifications]
  const closings = [...a.closings, ...b.closings]
  const cleared = [...(a.cleared ?? []), ...(b.cleared ?? [])]
  if (a.gap || b.gap || sizeOf(a) + sizeOf(b) - largest > heldMax)
    return { notifications: [], closings: [], wroteAudit: true, gap: true }
  const wroteAudit = a.wroteAudit || b.wroteAudit
  const at = a.at ?? b.at
  return { notifications, closings, wroteAudit, ...(cleared.length > 0 && { cleared }), ...(at && { at }) }
}

export const isEmpty = (signal: Signal): boolean => !signal.wroteAudit && sizeOf(signal) === 0

/**
 * A signal as payloads `v1 <node> <index>/<count> <piece>`, since the largest offer, escaped, does not fit in one.
 * Plain ASCII, so that a character is one byte in any database encoding. The index keeps equal pieces distinct;
 * PostgreSQL drops duplicate payloads.
 */
export function encodeSignal(node: string, signal: Signal): string[] {
  const { notifications, closings, wroteAudit, cleared, gap, at } = signal
  const rest = gap ?? cleared
  const text = JSON.stringify([
    notifications,
    closings,
    wroteAudit,
    ...(rest || at ? [rest ?? null, ...(at ? [at] : [])] : []),
  ]).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const room = payloadMax - node.length - 20
  const count = Math.ceil(text.length / room)
  const payload = (at: number): string =>
    `v1 ${node} ${at}/${count} ${text.slice(at * room, (at + 1) * room)}`
  return Array.from({ length: count }, (_, at) => payload(at))
}

const form = /^v1 ([a-z0-9]+) (\d+)\/(\d+) (.*)$/s

/**
 * Reassembles the payloads of other nodes and passes on each complete signal. Other payloads are dropped as if they
 * were lost: the format of a later version, or a NOTIFY from any other client of the database.
 */
export function signalDecoder(own: string, hear: (signal: Signal) => void): (payload: string) => void {
  const pieces = new Map<string, string[]>()
  return (payload) => {
    const [, node = own, index, count, piece = ''] = form.exec(payload) ?? []
    if (node === own) return
    // Pieces of one signal arrive in order; drop a piece that does not continue the previous ones.
    const before = index === '0' ? [] : pieces.get(node)
    pieces.delete(node)
    if (before?.length !== Number(index)) return
    const known = [...before, piece]
    if (known.length < Number(count)) return void pieces.set(node, known)
    const signal = parse(known.join(''))
    if (signal) hear(signal)
  }
}

const isList = (value: unknown, type: 'object' | 'string'): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === type && one !== null)

/** The JSON of a signal in this version. */
type Sent = [Notification[], Closing[], unknown, true | string[] | null, unknown]

function parse(text: string): Signal | undefined {
  try {
    const [notifications, closings, wroteAudit, rest, at] = parseJson(text) as Sent
    if (!isList(notifications, 'object') || !isList(closings, 'object')) return undefined
    const moment = typeof at === 'number' && { at }
    const signal = { notifications, closings, wroteAudit: wroteAudit === true, ...moment }
    if (rest === true) return { ...signal, gap: true }
    return rest && isList(rest, 'string') ? { ...signal, cleared: rest } : signal
  } catch {
    return undefined
  }
}

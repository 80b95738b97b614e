import type { Committed } from './connection.ts'

/** The part of a commit that other nodes hear of; `gap`: too much was queued, so recheck everything. */
export type Signal = Pick<Committed, 'notifications' | 'closings' | 'wroteAudit' | 'cleared'> & { gap?: true }

/** Max notifications, closings and cleared limiter keys that are queued for other nodes. */
const heldMax = 1000

/** PostgreSQL accepts less than 8000 bytes per notification. */
const payloadMax = 7_900

/** Merges two signals. Order is kept within each kind; connections can't see more. */
export function merged(a: Signal | undefined, b: Signal): Signal {
  if (!a) return b
  const notifications = [...a.notifications, ...b.notifications]
  const closings = [...a.closings, ...b.closings]
  const cleared = [...(a.cleared ?? []), ...(b.cleared ?? [])]
  if (a.gap || b.gap || notifications.length + closings.length + cleared.length > heldMax)
    return { notifications: [], closings: [], wroteAudit: true, gap: true }
  const wroteAudit = a.wroteAudit || b.wroteAudit
  return { notifications, closings, wroteAudit, ...(cleared.length > 0 && { cleared }) }
}

export const isEmpty = ({ notifications, closings, wroteAudit, cleared }: Signal): boolean =>
  !wroteAudit && !cleared && notifications.length === 0 && closings.length === 0

/** Whether a client waits for it. Hints at audit rows aren't urgent, nor are the evictions that logins cause. */
export const isUrgent = ({ notifications, closings, cleared, gap }: Signal): boolean =>
  gap === true ||
  cleared !== undefined ||
  notifications.length > 0 ||
  closings.some((closing) => closing.kind !== 'credentials' || !closing.evicted)

/**
 * A signal as payloads `<node> <index>/<count> <piece>`, since the largest offer, escaped, doesn't fit in one. Plain
 * ASCII, so that a character is one byte in any database encoding. The index keeps equal pieces distinct; PostgreSQL
 * drops duplicate payloads.
 */
export function encodeSignal(node: string, signal: Signal): string[] {
  const { notifications, closings, wroteAudit, cleared, gap } = signal
  const rest = gap ?? cleared
  const text = JSON.stringify([notifications, closings, wroteAudit, ...(rest ? [rest] : [])]).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  const room = payloadMax - node.length - 16
  const count = Math.ceil(text.length / room)
  return Array.from(
    { length: count },
    (_, index) => `${node} ${index}/${count} ${text.slice(index * room, (index + 1) * room)}`,
  )
}

const form = /^([a-z0-9]+) (\d+)\/(\d+) (.*)$/s

/**
 * Reassembles the payloads of other nodes and passes on each complete signal. Anything else is dropped: every client
 * of the database may notify.
 */
export function signalDecoder(own: string, hear: (signal: Signal) => void): (payload: string) => void {
  const pieces = new Map<string, string[]>()
  return (payload) => {
    const [, node = own, index, count, piece = ''] = form.exec(payload) ?? []
    if (node === own) return
    // Pieces of one signal arrive in order; drop a piece that doesn't continue the previous ones.
    const before = index === '0' ? [] : pieces.get(node)
    pieces.delete(node)
    if (before?.length !== Number(index)) return
    const known = [...before, piece]
    if (known.length < Number(count)) return void pieces.set(node, known)
    const signal = parse(known.join(''))
    if (signal) hear(signal)
  }
}

const isList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null)

const isKeys = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((key) => typeof key === 'string')

function parse(text: string): Signal | undefined {
  try {
    const [notifications, closings, wroteAudit, rest] = JSON.parse(text)
    if (!isList(notifications) || !isList(closings)) return undefined
    const signal = { notifications, closings, wroteAudit: wroteAudit === true }
    if (rest === true) return { ...signal, gap: true }
    return isKeys(rest) ? { ...signal, cleared: rest } : signal
  } catch {
    return undefined
  }
}

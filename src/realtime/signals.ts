import type { Committed } from './connection.ts'

/** What travels between nodes of what was committed; `gap`: more than could be held, so look at everything. */
export type Signal = Pick<Committed, 'notifications' | 'closings' | 'wroteAudit' | 'cleared'> & { gap?: true }

/** Notifications, closings and cleared limiter keys that are held for nodes that cannot be told at present. */
const heldMax = 1000

/** PostgreSQL takes less than 8000 bytes in one notification. */
const payloadMax = 7_900

/** One signal for several; each kind in the order it came, which is all that a connection can tell. */
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

/** Whether somebody waits for it; not so the hint that there are audit rows, nor what each login of a busy account evicts. */
export const isUrgent = ({ notifications, closings, cleared, gap }: Signal): boolean =>
  gap === true ||
  cleared !== undefined ||
  notifications.length > 0 ||
  closings.some((closing) => closing.kind !== 'credentials' || !closing.evicted)

/**
 * A signal as payloads `<node> <index>/<count> <piece>`: the largest offer, escaped, is more than one may hold.
 * Plain ASCII, so that a character is a byte in any encoding of the database; the index makes equal pieces
 * differ, which PostgreSQL would send once.
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
 * Puts the payloads of other nodes together again and hands each whole signal on. What is not one is dropped:
 * anybody who may connect to the database may notify.
 */
export function signalDecoder(own: string, hear: (signal: Signal) => void): (payload: string) => void {
  const pieces = new Map<string, string[]>()
  return (payload) => {
    const [, node = own, index, count, piece = ''] = form.exec(payload) ?? []
    if (node === own) return
    // The pieces of one signal come in order; one that does not continue them is without its beginning.
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

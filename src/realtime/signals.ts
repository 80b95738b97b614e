import type { Committed } from './hub.ts'

/** What travels between nodes of what was committed; `gap`: more than could be held, so look at everything. */
export type Signal = Pick<Committed, 'notifications' | 'closings' | 'wroteAudit'> & { gap?: true }

/** Notifications and closings that are held for nodes that cannot be told at present. */
const heldMax = 1000

/** PostgreSQL takes less than 8000 bytes in one notification. */
const payloadMax = 7_900

/** One signal for several; each kind in the order it came, which is all that a connection can tell. */
export function merged(a: Signal | undefined, b: Signal): Signal {
  if (!a) return b
  const held = a.notifications.length + a.closings.length + b.notifications.length + b.closings.length
  if (a.gap || b.gap || held > heldMax)
    return { notifications: [], closings: [], wroteAudit: true, gap: true }
  return {
    notifications: [...a.notifications, ...b.notifications],
    closings: [...a.closings, ...b.closings],
    wroteAudit: a.wroteAudit || b.wroteAudit,
  }
}

export const isEmpty = ({ notifications, closings, wroteAudit }: Signal): boolean =>
  !wroteAudit && notifications.length === 0 && closings.length === 0

/** Whether somebody waits for it; not so the hint that there are audit rows, nor what each login of a busy account evicts. */
export const isUrgent = ({ notifications, closings, gap }: Signal): boolean =>
  gap === true ||
  notifications.length > 0 ||
  closings.some((closing) => closing.kind !== 'credentials' || !closing.evicted)

/**
 * A signal as payloads `<node> <index>/<count> <piece>`: the largest offer, escaped, is more than one may hold.
 * Plain ASCII, so that a character is a byte in any encoding of the database; the index makes equal pieces
 * differ, which PostgreSQL would send once.
 */
export function encodeSignal(node: string, { notifications, closings, wroteAudit, gap }: Signal): string[] {
  const parts = [notifications, closings, wroteAudit, ...(gap ? [gap] : [])]
  const text = JSON.stringify(parts).replace(
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

function parse(text: string): Signal | undefined {
  try {
    const [notifications, closings, wroteAudit, gap] = JSON.parse(text)
    if (!isList(notifications) || !isList(closings)) return undefined
    return { notifications, closings, wroteAudit: wroteAudit === true, ...(gap === true && { gap }) }
  } catch {
    return undefined
  }
}

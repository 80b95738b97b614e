import { hash } from 'node:crypto'

/**
 * Names for prepared statements: a connection parses and plans each named text once. A name is a digest of its text:
 * behind a pooler that shares connections, the same name never means another statement of another process. The process
 * keeps this many; beyond that the clock algorithm evicts a text that was not used since the hand last passed it. So a
 * flood of rare texts never evicts the common ones.
 */
const namesMax = 300

type Named = { text: string; name: string; isUsed: boolean }

const named = new Map<string, Named>()
const ring: Named[] = []
let hand = 0
let given = 0

export function statementName(text: string): string {
  const known = named.get(text)
  if (known) {
    known.isUsed = true
    return known.name
  }
  given += 1
  const made = { text, name: `ck_${hash('sha256', text).slice(0, 20)}`, isUsed: false }
  named.set(text, made)
  if (ring.length < namesMax) ring.push(made)
  else {
    for (let one = ring[hand] as Named; one.isUsed; one = ring[hand] as Named) {
      one.isUsed = false
      hand = (hand + 1) % namesMax
    }
    named.delete((ring[hand] as Named).text)
    ring[hand] = made
    hand = (hand + 1) % namesMax
  }
  return made.name
}

/** For each connection, how many names had been assigned when it was opened. */
const openedAt = new WeakMap<object, number>()

export const noteOpened = (client: object): void => void openedAt.set(client, given)

/**
 * True if so many names were assigned since the connection was opened that it may hold twice `namesMax`
 * statements. The unused ones would take memory of the database for as long as the connection lives.
 */
export const isWornOut = (client: object): boolean => given - (openedAt.get(client) ?? given) > namesMax

/** The connection refuses one of its statements from now on. */
export const wearOut = (client: object): void => void openedAt.set(client, Number.NEGATIVE_INFINITY)

/**
 * Names of prepared statements: a connection parses and plans the text of a name once. Every text has one. The
 * process keeps so many; beyond that, a text that has not been used since the hand last passed it loses its name,
 * and gets a new one when it returns, so that a flood of rare texts never costs the common ones theirs.
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
  const made = { text, name: `s${++given}`, isUsed: false }
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

/** For each connection, how many names had been given when it was opened. */
const openedAt = new WeakMap<object, number>()

export const noteOpened = (client: object): void => void openedAt.set(client, given)

/**
 * True where so many names came after the connection was opened that it may hold twice as many statements as there
 * are names: no longer used, they would cost the database memory for as long as the connection lives.
 */
export const isWornOut = (client: object): boolean => given - (openedAt.get(client) ?? given) > namesMax

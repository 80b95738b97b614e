import type { Mac } from '../auth/cookie.ts'
import { cursorLengthMax } from './wire.ts'

/** Sort key of a row: what its list is ordered by, the unique tie-break last. */
export type CursorKey = (string | number | null)[]

export interface Cursors {
  /** The cursor behind a row. `binding` names method, actor, filters, order; see `createCursors`. */
  write(binding: string, key: CursorKey): string
  /** The key of a cursor that `write` made for the same binding, else undefined: `invalid_cursor`. */
  read(binding: string, cursor: string): CursorKey | undefined
}

const macLength = 43

/** The longest key that fits into a cursor, as JSON. */
export const keyBytesMax = Math.floor(((cursorLengthMax - macLength) * 3) / 4)

/**
 * Page cursors without server state (contract 1, section 0): the key as base64url JSON, then its MAC.
 * `mac` comes from the cookie key ring, so any of its keys verifies. The binding is part of what is
 * signed, not of the cursor; its length does not matter. A key may take `keyBytesMax` bytes as JSON.
 */
export function createCursors(mac: Mac): Cursors {
  // The payload has no dot, so payload and binding cannot be shifted against each other.
  const signed = (payload: string, binding: string): string => `${payload}.${binding}`
  return {
    write(binding, key) {
      const payload = Buffer.from(JSON.stringify(key)).toString('base64url')
      const cursor = payload + mac.sign(signed(payload, binding))
      if (cursor.length > cursorLengthMax)
        throw new RangeError('The sort key is too long for a cursor; order this list by something shorter.')
      return cursor
    },
    read(binding, cursor) {
      const payload = cursor.slice(0, -macLength)
      if (mac.verify(signed(payload, binding), cursor.slice(-macLength)) < 0) return undefined
      return JSON.parse(Buffer.from(payload, 'base64url').toString()) as CursorKey
    },
  }
}

import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Mac } from '../auth/key-ring.ts'
import { cursorLengthMax } from '../wire/types.ts'

/** The sort key of a row: the values its list is ordered by, the unique tie-breaker last. */
export type CursorKey = (string | number | boolean | null)[]

export interface Cursors {
  /** The cursor that continues after a row. `binding` names method, actor, filters and order; see `createCursors`. */
  write(binding: string, key: CursorKey): string
  /** Like `write`, but encrypted: for the key of a row that the caller may not see. */
  seal(binding: string, key: CursorKey): string
  /** The key of a cursor that `write` or `seal` made for the same binding, else undefined. */
  read(binding: string, cursor: string): CursorKey | undefined
}

const macLength = 43

/** The longest key that fits into a cursor, in bytes of JSON. */
export const keyBytesMax = Math.floor(((cursorLengthMax - macLength) * 3) / 4)

/** Plaintexts are padded to this, because the length of the ciphertext would reveal theirs. */
const blockBytes = 64
const ivBytes = 16

/**
 * Page cursors without server state: the key as base64url JSON, then its MAC. `mac` comes from the cookie key
 * ring, so any of its keys verifies. The binding is signed but not part of the cursor, so it may be of any
 * length. A key may take `keyBytesMax` bytes as JSON, a sealed one 320.
 */
export function createCursors(mac: Mac): Cursors {
  // A payload holds neither dot nor exclamation mark, so a signature of one form or split never fits another.
  const signed = (payload: string, binding: string): string => `${payload}.${binding}`
  const sealed = (payload: string, binding: string): string => `${payload}!${binding}`
  const bytesOf = (text: string, key?: number): Buffer => Buffer.from(mac.sign(text, key), 'base64url')
  const made = (payload: string, signature: string): string => {
    if (payload.length + signature.length > cursorLengthMax)
      throw new RangeError('The sort key is too long for a cursor; order this list by something shorter.')
    return payload + signature
  }
  return {
    write(binding, key) {
      const payload = Buffer.from(JSON.stringify(key)).toString('base64url')
      return made(payload, mac.sign(signed(payload, binding)))
    },
    seal(binding, key) {
      const json = Buffer.from(JSON.stringify(key))
      const padded = Buffer.alloc(Math.ceil(json.length / blockBytes) * blockBytes, ' ')
      json.copy(padded)
      // Derived from the plaintext: the same text gives the same IV, and no two texts share one.
      const iv = bytesOf(`iv ${binding} ${json}`).subarray(0, ivBytes)
      const cipher = createCipheriv('aes-256-ctr', bytesOf(cipherKey), iv)
      const payload = Buffer.concat([iv, cipher.update(padded), cipher.final()]).toString('base64url')
      return made(payload, mac.sign(sealed(payload, binding)))
    },
    read(binding, cursor) {
      const payload = cursor.slice(0, -macLength)
      const signature = cursor.slice(-macLength)
      const bytes = Buffer.from(payload, 'base64url')
      if (mac.verify(signed(payload, binding), signature) >= 0) return JSON.parse(bytes.toString())
      const key = mac.verify(sealed(payload, binding), signature)
      if (key < 0) return undefined
      const cipher = createDecipheriv('aes-256-ctr', bytesOf(cipherKey, key), bytes.subarray(0, ivBytes))
      return JSON.parse(Buffer.concat([cipher.update(bytes.subarray(ivBytes)), cipher.final()]).toString())
    },
  }
}

/** Its MAC is the cipher key. No cursor can have that MAC, since the text of every cursor has a dot or `!`. */
const cipherKey = 'cipher of sealed cursors'

import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Mac } from '../auth/cookie.ts'
import { cursorLengthMax } from '../wire/types.ts'

/** Sort key of a row: what its list is ordered by, the unique tie-break last. */
export type CursorKey = (string | number | boolean | null)[]

export interface Cursors {
  /** The cursor behind a row. `binding` names method, actor, filters, order; see `createCursors`. */
  write(binding: string, key: CursorKey): string
  /** A cursor whose key its holder cannot read: that of a row which the caller may not see. */
  seal(binding: string, key: CursorKey): string
  /** The key of a cursor that `write` or `seal` made for the same binding, else undefined: `invalid_cursor`. */
  read(binding: string, cursor: string): CursorKey | undefined
}

const macLength = 43

/** The longest key that fits into a cursor, as JSON. */
export const keyBytesMax = Math.floor(((cursorLengthMax - macLength) * 3) / 4)

/** Ciphertexts come in few lengths: the length of a text would tell of it. */
const blockBytes = 64
const ivBytes = 16

/**
 * Page cursors without server state: the key as base64url JSON, then its MAC. `mac` comes from the cookie key
 * ring, so any of its keys verifies. The binding is part of what is signed, not of the cursor; its length does
 * not matter. A key may take `keyBytesMax` bytes as JSON, a sealed one 320.
 */
export function createCursors(mac: Mac): Cursors {
  // The payload has neither dot nor exclamation mark, so no part can be shifted into another or taken for it.
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
      // Made of what is sealed: the same again for the same text, and never for two different ones.
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

/** Signed, it is the key of the cipher; no cursor is signed by a text without a mark. */
const cipherKey = 'cipher of sealed cursors'

import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'

/** Signs with the first key of a ring and verifies with all of them; never reveals a key. */
export interface Mac {
  /** HMAC-SHA256 of the text as 43 base64url characters, with the first key or the one at an index from `verify`. */
  sign(text: string, key?: number): string
  /** Index of the key that made `mac`, or -1. Compares texts, so another encoding of the same bytes fails. */
  verify(text: string, mac: string): number
}

export interface KeyRing extends Mac {
  /** A Mac with keys derived from those of the ring, for a purpose that must not mix with cookies. */
  derive(purpose: string): Mac
}

/** Takes the cookie keys, newest first; the configuration has checked their form. */
export function createKeyRing(keys: readonly string[]): KeyRing {
  if (keys.length === 0) throw new RangeError('The cookie key ring needs at least one key.')
  const ring = keys.map((key) => createSecretKey(key, 'utf8'))
  return {
    ...createMac(ring),
    derive: (purpose) =>
      createMac(ring.map((key) => createSecretKey(digest(key, `derive:${purpose}`), 'utf8'))),
  }
}

const digest = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')

function createMac(keys: readonly KeyObject[]): Mac {
  return {
    sign: (text, key = 0) => digest(keys[key] as KeyObject, text),
    verify(text, mac) {
      const given = Buffer.from(mac)
      return keys.findIndex((key) => {
        const own = Buffer.from(digest(key, text))
        return own.length === given.length && timingSafeEqual(own, given)
      })
    },
  }
}

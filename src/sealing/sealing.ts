import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { sha256Hex } from '../auth/secrets.ts'

/** Where a sealed text is stored; it opens nowhere else. */
export type Place = {
  table: string
  row: string
  /** What the row belongs to, such as its account. */
  owner: string
}

/** Encrypts secrets that are needed again, so that a dump of the database without the key ring reveals none. */
export type Sealing = {
  seal(text: string, place: Place): string
  /** Undefined if no key of the ring opens the text at this place. */
  open(sealed: string, place: Place): string | undefined
  /** The prefix of texts sealed by the first key; all others should be sealed again. */
  readonly prefix: string
}

const form = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22,})$/
const algorithm = 'aes-256-gcm'
const tagBytes = 16

type Key = { id: string; secret: Buffer }

/** Takes the secret keys, newest first: the first seals, all open. The configuration has checked their form. */
export function createSealing(keys: readonly string[]): Sealing {
  const ring = keys.map(derived)
  const [first] = ring
  if (!first) throw new RangeError('The secret key ring needs at least one key.')
  return {
    prefix: `v1.${first.id}.`,
    seal(text, place) {
      const iv = randomBytes(12)
      const cipher = createCipheriv(algorithm, first.secret, iv, { authTagLength: tagBytes })
      cipher.setAAD(bound(place))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${first.id}.${iv.toString('base64url')}.${body.toString('base64url')}`
    },
    open(sealed, place) {
      const [, id, iv = '', text = ''] = form.exec(sealed) ?? []
      const key = ring.find((one) => one.id === id)
      const body = Buffer.from(text, 'base64url')
      // Accepts one text per content: a decoder ignores trailing bits, so other texts would decode to the same bytes.
      if (!key || body.toString('base64url') !== text) return undefined
      return opened(key, Buffer.from(iv, 'base64url'), body, place)
    },
  }
}

function derived(key: string): Key {
  const secret = Buffer.from(hkdfSync('sha256', key, '', 'cellkeep sealing', 32))
  return { id: sha256Hex(secret).slice(0, 8), secret }
}

function opened({ secret }: Key, iv: Buffer, body: Buffer, place: Place): string | undefined {
  const decipher = createDecipheriv(algorithm, secret, iv, { authTagLength: tagBytes })
  decipher.setAAD(bound(place))
  decipher.setAuthTag(body.subarray(-tagBytes))
  try {
    return Buffer.concat([decipher.update(body.subarray(0, -tagBytes)), decipher.final()]).toString()
  } catch {
    return undefined
  }
}

const bound = ({ table, row, owner }: Place): Buffer => Buffer.from(JSON.stringify([table, row, owner]))

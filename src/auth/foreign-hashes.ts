import { createCipheriv, hash, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto'
import { createRequire } from 'node:module'

/**
 * Hashes that an import brought along, until the next login replaces them by Argon2id. What the systems themselves
 * write is turned into these texts by `src/import/formats.ts`:
 *
 *     $2b$12$…   $django-bcrypt-sha256$2b$12$…
 *     $scrypt$ln=14,r=8,p=1$salt$key   also scrypt-nfkc, scrypt-firebase
 *     $pbkdf2-sha256$i=600000$salt$key   also pbkdf2-sha1, pbkdf2-sha512
 */
type Foreign =
  | { kind: 'bcrypt'; cost: number; text: string; isDigested: boolean }
  | { kind: 'scrypt'; variant: string; ln: number; r: number; p: number; salt: Buffer; key: Buffer }
  | { kind: 'pbkdf2'; digest: string; iterations: number; salt: Buffer; key: Buffer }

// Without $2x$, which the library accepts: a faulty program made those hashes. The last character of salt and key is
// checked because the library answers false at once for an impossible one, which the timing would reveal.
const bcryptForm =
  /^(\$django-bcrypt-sha256)?(\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{30}[.CGKOSWaeimquy26])$/
const scryptForm =
  /^\$scrypt(|-nfkc|-firebase)\$ln=(\d{1,2}),r=(\d{1,4}),p=(\d{1,4})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const pbkdf2Form = /^\$pbkdf2-(sha1|sha256|sha512)\$i=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** A key cut shorter than this would match too many passwords. */
const keyMin = 16
const keyMax = 128

/** Undefined if the text is not such a hash. `isBearable` checks its cost. */
export function parseForeign(stored: string): Foreign | undefined {
  const bcrypt = bcryptForm.exec(stored)
  if (bcrypt) {
    const [, digested, text = '', cost] = bcrypt
    return { kind: 'bcrypt', cost: Number(cost), text, isDigested: digested !== undefined }
  }
  const scrypt = scryptForm.exec(stored)
  if (scrypt) {
    const [, variant = '', ...rest] = scrypt
    const [ln, r, p] = rest.splice(0, 3).map(Number) as [number, number, number]
    // Scrypt requires N < 2^(128 r / 8), so `ln` must be below `16 * r`.
    return ln < 16 * r ? keyed(rest, { kind: 'scrypt', variant, ln, r, p }) : undefined
  }
  const [, digest, iterations, ...rest] = pbkdf2Form.exec(stored) ?? []
  if (digest === undefined) return undefined
  return keyed(rest, { kind: 'pbkdf2', digest, iterations: Number(iterations) })
}

function keyed<T extends object>(texts: string[], rest: T): (T & { salt: Buffer; key: Buffer }) | undefined {
  const [salt, key] = texts.map((text) => Buffer.from(text, 'base64')) as [Buffer, Buffer]
  return key.length < keyMin || key.length > keyMax ? undefined : { ...rest, salt, key }
}

const scryptMemoryMax = 256 * 1024 * 1024

/** False if one verification would take far too much memory or time. */
export function isBearable(foreign: Foreign): boolean {
  switch (foreign.kind) {
    case 'bcrypt':
      return foreign.cost >= 4 && foreign.cost <= 16
    case 'scrypt': {
      const { ln, r, p } = foreign
      return ln >= 1 && r >= 1 && p >= 1 && p <= 16 && 128 * 2 ** ln * r <= scryptMemoryMax
    }
    case 'pbkdf2':
      return foreign.iterations >= 1 && foreign.iterations <= 5_000_000
  }
}

/** True for a text that `verifyForeign` can verify. */
export function isForeign(stored: string): boolean {
  const foreign = parseForeign(stored)
  return foreign !== undefined && isBearable(foreign)
}

/** Slow, so call it on a hashing thread only. */
export function verifyForeign(stored: string, password: string): boolean {
  const foreign = parseForeign(stored)
  if (!foreign || !isBearable(foreign)) return false
  if (foreign.kind === 'bcrypt') {
    const given = foreign.isDigested ? hash('sha256', password) : password
    return bcryptLibrary().verifySync(given, foreign.text)
  }
  const made = foreign.kind === 'scrypt' ? scryptKey(foreign, password) : pbkdf2Key(foreign, password)
  return timingSafeEqual(made, foreign.key)
}

function scryptKey({ variant, ln, r, p, salt, key }: Foreign & { kind: 'scrypt' }, password: string): Buffer {
  const text = variant === '-nfkc' ? password.normalize('NFKC') : password
  const options = { N: 2 ** ln, r, p, maxmem: 2 * scryptMemoryMax }
  if (variant !== '-firebase') return scryptSync(text, salt, key.length, options)
  // Firebase encrypts the project's signer key with this key stream. The import stores the stream, not the signer key.
  const cipher = createCipheriv('aes-256-ctr', scryptSync(text, salt, 32, options), Buffer.alloc(16))
  return cipher.update(Buffer.alloc(key.length))
}

const pbkdf2Key = ({ digest, iterations, salt, key }: Foreign & { kind: 'pbkdf2' }, password: string) =>
  pbkdf2Sync(password, salt, iterations, key.length, digest)

/** An optional package, loaded for the first bcrypt hash. */
export const bcryptLibrary = (): typeof import('@node-rs/bcrypt') =>
  createRequire(import.meta.url)('@node-rs/bcrypt')

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 32 random bytes as 43 base64url characters, for session tokens, API secrets and keys. */
export const randomToken = (): string => randomBytes(32).toString('base64url')
/** A whole text of that form. */
export const tokenForm = /^[A-Za-z0-9_-]{43}$/

/** Lower-case hex SHA-256 of bytes, or of a text as UTF-8. */
export const sha256Hex = (text: string | Buffer): string => hash('sha256', text)

/** Compares in constant time; comparing digests hides the lengths as well. */
export const equalText = (a: string, b: string): boolean =>
  timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))

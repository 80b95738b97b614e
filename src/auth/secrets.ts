import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 32 bytes of the system's generator as 43 base64url characters: session tokens, API secrets, keys. */
export const randomToken = (): string => randomBytes(32).toString('base64url')

/** Lower-case hex SHA-256 of the UTF-8 text. */
export const sha256Hex = (text: string): string => hash('sha256', text)

/** The id under which a session is stored; the token itself is not kept (contract 2, section 5). */
export const sessionIdOf = (token: string): string => sha256Hex(token)

/** Equality in constant time; comparing digests hides the lengths as well. */
export const equalText = (a: string, b: string): boolean =>
  timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))

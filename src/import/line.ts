import { z } from 'zod'
import { ActorName, Email, emailKey, foldName, Username } from '../accounts/formats.ts'
import { noPassword } from '../auth/password.ts'
import { badText } from '../wire/issues.ts'
import { Timestamp } from '../wire/types.ts'
import { type FirebaseParams, ForeignPassword, storedHash } from './formats.ts'

/** No plain password, which would have to be hashed here, and no role, which requires consent. */
const Line = z.strictObject({
  username: Username,
  email: Email.nullish(),
  email_verified: z.boolean().nullish(),
  /** Default: the username. */
  actor_name: ActorName.nullish(),
  created_at: Timestamp.nullish(),
  /** Identifies the line to a later run. Default: the username. */
  external_id: z.string().min(1).max(255).nullish(),
  password: ForeignPassword.nullish(),
})

/** A line that may become an account, as the statements take it. */
export type Row = {
  line: number
  external_id: string
  username: string
  email: string | null
  email_key: string | null
  email_verified: boolean
  password_hash: string
  created_at: string | null
  actor_name: string
  name_key: string
}

export type Refused = {
  line: number
  /** Null if the line has none: the username that replaces it is left out, because it may name a person. */
  external_id: string | null
  reason: 'bad_format' | 'hash_unsupported' | 'hash_too_costly' | 'username_taken' | 'email_taken'
  /** The key whose value is malformed. */
  key?: string
}

type Reading = { firebase?: FirebaseParams | undefined; now: number }

/** `now` is the current time by the clock of the database. */
export function readLine(value: unknown, line: number, { firebase, now }: Reading): Row | Refused {
  const parsed = badText(value) ? undefined : Line.safeParse(value)
  if (!parsed?.success) {
    const key = parsed?.error.issues[0]?.path[0]
    return { line, external_id: null, reason: 'bad_format', ...(key !== undefined && { key: String(key) }) }
  }
  const { username, email = null, email_verified, actor_name, created_at = null, password } = parsed.data
  const external_id = parsed.data.external_id ?? null
  if (created_at !== null && Date.parse(created_at) > now)
    return { line, external_id, reason: 'bad_format', key: 'created_at' }
  const hash = password == null ? { stored: noPassword } : storedHash(password, firebase)
  if (typeof hash === 'string') return { line, external_id, reason: hash }
  return {
    line,
    external_id: external_id ?? username,
    username,
    email,
    email_key: emailKey(email),
    email_verified: email !== null && email_verified === true,
    password_hash: hash.stored,
    created_at,
    actor_name: actor_name ?? username,
    name_key: foldName(actor_name ?? username),
  }
}

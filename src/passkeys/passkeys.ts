import { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { noControls } from '../wire/types.ts'
import { type AssertionResponse, type KnownPasskey, type RelyingParty, verifyAssertion } from './webauthn.ts'

/** Wire form of a passkey. */
export const Passkey = z.object({
  id: z.string(),
  name: z.string(),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  /** Whether it stays on one device, or may be synced; and whether it is. */
  device: z.enum(['single', 'synced']),
  backed_up: z.boolean(),
  /** Signs in on its own, because its device checks who uses it. */
  first_factor: z.boolean(),
  /** Asked for after the password. */
  second_factor: z.boolean(),
})
export type Passkey = z.output<typeof Passkey>

export const passkeyColumns = sql.raw(Object.keys(Passkey.shape).join(', '))

export const PasskeyName = z.string().regex(noControls, { abort: true }).trim().min(1).max(60)

/** Max passkeys of one account. */
export const passkeysMax = 20

export const hasPasskeys = ({ passkeys }: Config): boolean => passkeys

/** The service as browsers and authenticators know it. */
export const partyOf = ({ rp_id, passkey_origins, site_name }: Config): RelyingParty & { name: string } => ({
  id: rp_id as string,
  origins: passkey_origins,
  name: site_name,
})

/** The passkeys of an account that a browser may use here. */
export const passkeysOf = (
  { config }: App,
  db: Queryable,
  account_id: string,
  where = sql`true`,
): Promise<KnownPasskey[]> =>
  db.rows<KnownPasskey>(sql`
    select id, transports from account_passkey
    where account_id = ${account_id}::uuid and rp_id = ${config.rp_id} and ${where} order by created_at, id`)

/** A response that the key of a live account has signed. */
export type ProvenPasskey = {
  id: string
  account_id: string
  counter: number
  backed_up: boolean
  first_factor: boolean
  second_factor: boolean
  /** The device has checked who uses it. */
  is_verified: boolean
}

type Stored = Pick<ProvenPasskey, 'account_id' | 'first_factor' | 'second_factor'> & {
  public_key: Buffer
  device: string
}

/** Verifies a response to a challenge; undefined if it proves no passkey of a live account. */
export async function provePasskey(
  { config }: App,
  db: Queryable,
  challenge: string | null,
  response: AssertionResponse,
): Promise<ProvenPasskey | undefined> {
  const { id } = response
  const stored = await db.first<Stored>(sql`
    select account_id, public_key, device, first_factor, second_factor
    from account_passkey join account on account.id = account_id and deleted_at is null
    where account_passkey.id = ${id} and rp_id = ${config.rp_id}`)
  if (!stored || challenge === null) return undefined
  const { public_key, device, ...known } = stored
  const proven = await verifyAssertion(partyOf(config), challenge, response, { id, public_key })
  const { userHandle } = response.response
  const isOwner = !userHandle || Buffer.from(userHandle, 'base64url').toString() === known.account_id
  // Whether a key can be synced never changes: a different answer comes from a different key.
  if (!proven || !isOwner || proven.device !== device) return undefined
  const { counter, is_verified, backed_up } = proven
  return { id, ...known, counter, is_verified, backed_up }
}

/**
 * Records the use of a passkey. The caller holds the account lock. A counter that has not risen hints at a copy: the
 * owner is notified and decides.
 */
export async function usePasskey(
  app: App,
  work: Pick<Work, 'db' | 'afterCommit'>,
  { id, account_id, counter, backed_up }: ProvenPasskey,
): Promise<'used' | 'passkey_counter' | 'gone'> {
  const key = sql`id = ${id} and account_id = ${account_id}::uuid`
  const used = await work.db.run(sql`
    update account_passkey set counter = ${counter}, backed_up = ${backed_up}, last_used_at = now()
    where ${key} and (counter < ${counter} or (counter = 0 and ${counter}::bigint = 0))`)
  if (used > 0) return 'used'
  if (!(await work.db.first(sql`select 1 from account_passkey where ${key}`))) return 'gone'
  await notify(app, work, account_id, 'passkey_counter')
  return 'passkey_counter'
}

import { createHmac, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { equalText } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { type Queryable, sql } from '../db/db.ts'
import type { Place } from '../sealing/sealing.ts'
import { worded } from '../wire/rules.ts'

/** Time-based one-time passwords as RFC 6238 has them: SHA-1, 6 digits, 30 seconds. */

const stepSeconds = 30
const secretBytes = 20

export const TotpCode = z
  .string()
  .max(32, { abort: true })
  .regex(worded(/^ *(?:[0-9] *){6}$/, 'The six digits that the authenticator shows are required.'))
  .overwrite((text) => text.replaceAll(' ', ''))

export const newSecret = (): Buffer => randomBytes(secretBytes)

export function codeAt(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const number = mac.readUInt32BE((mac[19] as number) & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
}

/** The step whose code this is: the current one or a neighbour, because clocks drift both ways. */
export function stepOf(secret: Buffer, code: string, now: number): number | undefined {
  const present = Math.floor(now / 1000 / stepSeconds)
  return [present - 1, present, present + 1].filter((step) => equalText(codeAt(secret, step), code)).at(-1)
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Base32 of a secret whose number of bits is a multiple of five. */
export const base32 = (secret: Buffer): string =>
  Array.from(secret, (byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .replace(/.{5}/g, (bits) => letters[Number.parseInt(bits, 2)] as string)

/** What authenticators read from a QR code. */
export function totpUri({ config }: Pick<App, 'config'>, username: string, secret: Buffer): string {
  const site = encodeURIComponent(config.site_name)
  const key = `secret=${base32(secret)}&issuer=${site}&algorithm=SHA1&digits=6&period=${stepSeconds}`
  return `otpauth://totp/${site}:${encodeURIComponent(username)}?${key}`
}

const placeOf = (row: string, owner: string): Place => ({ table: 'account_totp', row, owner })

export const sealSecret = ({ sealing }: App, secret: Buffer, id: string, account_id: string): string => {
  if (!sealing) throw new Error('TOTP is wired without a key ring')
  return sealing.seal(secret.toString('base64url'), placeOf(id, account_id))
}

/** Includes the database time by which the code is checked. */
export type StoredTotp = { id: string; secret_sealed: string; now_ms: number }
export const storedTotp = sql`id, secret_sealed, extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`

/** The step whose code this is; undefined also when no key of the ring opens the secret, which is logged. */
export function storedStepOf(app: App, totp: StoredTotp, account_id: string, code: string) {
  const { id, secret_sealed, now_ms } = totp
  const secret = app.sealing?.open(secret_sealed, placeOf(id, account_id))
  if (secret === undefined)
    app.log.error(
      { event: 'sealed_lost', account_id },
      'no secret key decrypts a TOTP secret; recovery codes and passkeys still work',
    )
  return secret === undefined ? undefined : stepOf(Buffer.from(secret, 'base64url'), code, now_ms)
}

/** Uses a code up: no step is accepted twice, nor one before it. The caller holds the account lock. */
export async function useTotp(app: App, db: Queryable, account_id: string, code: string): Promise<boolean> {
  const totp = await db.first<StoredTotp>(sql`
    select ${storedTotp} from account_totp where account_id = ${account_id}::uuid and confirmed_at is not null`)
  const step = totp && storedStepOf(app, totp, account_id, code)
  if (step === undefined) return false
  const used = await db.run(sql`
    update account_totp set last_step = ${step}, last_used_at = now()
    where id = ${totp?.id}::uuid and last_step < ${step}`)
  return used > 0
}

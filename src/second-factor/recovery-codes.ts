import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { sha256Hex } from '../auth/secrets.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { worded } from '../wire/rules.ts'

/** Crockford's base32 has no I, L, O and U, so that a code read aloud or copied by hand stays the same. */
const symbols = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const perSet = 10

/** A code as typed: case, spaces and dashes are ignored, and letters that look like digits are digits. */
export const RecoveryCode = z
  .string()
  .max(64, { abort: true })
  .regex(
    worded(/^[\s-]*(?:[0-9A-TV-Za-tv-z][\s-]*){24}$/, 'A recovery code is required: 24 letters and digits.'),
  )
  .overwrite(normalised)

function normalised(text: string): string {
  return text.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1')
}

/** 120 random bits in four groups: unlike a password too many to guess, so a plain digest is stored. */
const newCode = (): string =>
  Array.from(randomBytes(24), (byte) => symbols[byte % symbols.length])
    .join('')
    .replace(/.{6}(?=.)/g, '$&-')

/** Replaces all codes of the account and returns the new ones, which are shown once. */
export async function replaceCodes(db: Queryable, account_id: string): Promise<string[]> {
  const codes = Array.from({ length: perSet }, newCode)
  const hashes = codes.map((code) => sha256Hex(normalised(code)))
  await db.run(sql`
    with earlier as (${removal(account_id)})
    insert into account_recovery_code (account_id, code_hash)
    select ${account_id}::uuid, one from unnest(${hashes}::text[]) one`)
  return codes
}

const removal = (account_id: string): Sql =>
  sql`delete from account_recovery_code where account_id = ${account_id}::uuid`

/** Removes all codes of the account, and returns how many. */
export const removeCodes = (db: Queryable, account_id: string): Promise<number> => db.run(removal(account_id))

/** Uses a code up. The caller holds the account lock. */
export const useCode = async (db: Queryable, account_id: string, code: string): Promise<boolean> =>
  (await db.run(sql`
    delete from account_recovery_code
    where account_id = ${account_id}::uuid and code_hash = ${sha256Hex(code)}`)) > 0

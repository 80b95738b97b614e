import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { partyOf, passkeysOf, provePasskey, usePasskey } from './passkeys.ts'
import { type AssertionResponse, newChallenge, requestOptions } from './webauthn.ts'

/** The challenge and options of a second step; undefined if the account has no passkey for one that works here. */
export async function passkeyStep(app: App, db: Queryable, account_id: string) {
  const keys = app.config.passkeys ? await passkeysOf(app, db, account_id, sql`second_factor`) : []
  if (keys.length === 0) return undefined
  const challenge = newChallenge()
  return { challenge, passkey_options: await requestOptions(partyOf(app.config), challenge, keys) }
}

/** Uses a second factor of the account if the response is right. The caller holds the account lock. */
export async function usePasskeyStep(
  app: App,
  work: Work,
  { account_id, challenge }: { account_id: string; challenge: string | null },
  response: AssertionResponse,
): Promise<boolean> {
  const proven = await provePasskey(app, work.db, challenge, response)
  if (!proven?.second_factor || proven.account_id !== account_id) return false
  return (await usePasskey(app, work, proven)) === 'used'
}

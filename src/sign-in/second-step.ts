import type { App } from '../core/app.ts'
import { committed } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { passkeyStep } from '../passkeys/second-step.ts'
import type { SignInMethod } from '../sessions/sessions.ts'
import { beginFlow, secondsOf } from './flow.ts'

export type FirstStep = {
  account_id: string
  methods: readonly SignInMethod[]
  provider?: string | undefined
  /** What the second step completes; a renewed proof is bound to its session. */
  intent: 'sign_in' | 'reauthenticate'
  session_id?: string | undefined
}

/**
 * Refuses with `second_factor_required` if the account has a second factor, and begins the flow that asks for it: the
 * refusal commits. The caller holds the account lock.
 */
export async function requireSecondStep(app: App, db: Queryable, first: FirstStep): Promise<void> {
  const { totp, recovery_code, passkey } = await db.one<
    Record<'totp' | 'recovery_code' | 'passkey', boolean>
  >(sql`
    select
      exists (select from account_totp where account_id = ${first.account_id}::uuid and confirmed_at is not null) as totp,
      exists (select from account_recovery_code where account_id = ${first.account_id}::uuid) as recovery_code,
      exists (select from account_passkey where account_id = ${first.account_id}::uuid and second_factor) as passkey`)
  if (!totp && !passkey) return
  const { challenge, ...options } = (passkey && (await passkeyStep(app, db, first.account_id))) || {}
  const { cookie } = await beginFlow(app, db, {
    ...first,
    kind: 'second_factor',
    methods: [...first.methods],
    ...(challenge !== undefined && { challenge }),
  })
  const methods = [totp && 'totp', challenge && 'passkey', recovery_code && 'recovery_code'].filter(Boolean)
  const expires_in = secondsOf('second_factor')
  const required = refusal('second_factor_required', { methods, expires_in, ...options })
  required.cookie = cookie
  throw committed(required)
}

import { holdsAnyOf } from '../auth/active-grant.ts'
import { secondFactorActive } from '../auth/ways-in.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import type { Notice } from '../registry/messages.ts'
import { endFlows } from '../sign-in/flow.ts'
import { removeCodes, replaceCodes } from './recovery-codes.ts'

/** What follows from a change of second factors, whatever their kind. The caller holds the account lock. */

export type FactorWork = Pick<Work, 'db' | 'audit' | 'afterCommit'>

/** Returns recovery codes, to be shown once, for an account that has none; otherwise null. */
export async function factorAdded(
  app: App,
  work: FactorWork,
  account_id: string,
  detail: Detail,
  notice: Notice = 'second_factor_added',
): Promise<string[] | null> {
  await endFlows(work.db, account_id)
  await notify(app, work, account_id, notice)
  const { has_codes } = await work.db.one<{ has_codes: boolean }>(sql`
    select exists (select from account_recovery_code where account_id = ${account_id}::uuid) as has_codes`)
  return has_codes ? null : await addCodes(work, account_id, detail)
}

/** Replaces the recovery codes. */
export async function addCodes(
  { db, audit }: FactorWork,
  account_id: string,
  detail: Detail,
): Promise<string[]> {
  const codes = await replaceCodes(db, account_id)
  audit('factor_add', { factor: 'recovery_codes', ...detail }, { target_account_id: account_id })
  return codes
}

/**
 * Ends begun flows and notifies the owner. The last second factor takes the recovery codes with it; its owner cannot
 * remove it while a role requires one.
 */
export async function factorRemoved(
  app: App,
  work: FactorWork,
  account_id: string,
  detail: Detail,
  { byOwner, notice = 'second_factor_removed' }: { byOwner: boolean; notice?: Notice },
): Promise<void> {
  const { db, audit } = work
  await endFlows(db, account_id)
  await notify(app, work, account_id, notice)
  const { active, required } = await stateOf(app, db, account_id)
  if (active) return
  if (required && byOwner) throw refusal('second_factor_policy')
  if ((await removeCodes(db, account_id)) > 0)
    audit('factor_remove', { factor: 'recovery_codes', ...detail }, { target_account_id: account_id })
}

/** Whether an account has a second factor, and whether a role that it holds requires one. */
export const stateOf = ({ config }: App, db: Queryable, account_id: string) =>
  db.one<{ active: boolean; required: boolean }>(sql`
    select ${secondFactorActive(sql`${account_id}::uuid`)} as active,
      ${holdsAnyOf(sql`${account_id}::uuid`, config.require_second_factor)} as required`)

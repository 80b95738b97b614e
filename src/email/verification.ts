import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import { makeTicket, type NewTicket } from '../tickets/tickets.ts'

/** Mails a link that verifies the e-mail of a locked account. False if it has none, or a verified one. */
export async function sendVerification(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  account_id: string,
  { detail, locale }: Pick<NewTicket, 'detail' | 'locale'>,
): Promise<boolean> {
  if (app.config.mail === 'off') return false
  const { db } = work
  const unproven = await db.first<{ email: string; email_key: string }>(sql`
    select email, email_key from account where id = ${account_id}::uuid and email is not null and not email_verified`)
  if (!unproven) return false
  await makeTicket(app, work, {
    purpose: 'email_verify',
    account_id,
    delivery: 'mailed',
    ...unproven,
    created_by: null,
    detail,
    locale,
  })
  return true
}

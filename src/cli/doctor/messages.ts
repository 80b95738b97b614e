import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { type Database, sql } from '../../db/db.ts'
import { readPrivateFile } from '../../files/private-file.ts'
import { countUnderOldKeys } from '../../sealing/reseal.ts'
import { createSealing } from '../../sealing/sealing.ts'
import { isOpen } from '../../tickets/tickets.ts'
import type { Finding } from './finding.ts'

type Counts = { failed: number; waiting: number; linkless: number }

/** Findings about messages, about invites that nobody can claim, and about secrets under old keys. */
export async function messageFindings(db: Database, config: Config): Promise<Finding[]> {
  const { failed, waiting, linkless } = await db.one<Counts>(sql`
    select (select count(*) from message_outbox where state = 'failed' and error <> 'expired') as failed,
      (select count(*) from message_outbox where state = 'queued' and created_at < now() - interval '1 hour') as waiting,
      (select count(*) from invite i where claimed_at is null and (expires_at is null or expires_at > now())
        and not exists (select from account_ticket t where t.invite_id = i.id and ${isOpen})) as linkless`)
  const findings: Finding[] = []
  const add = (count: number, finding: string, what: string, remedy: string): void => {
    if (count > 0) findings.push({ finding, what, remedy })
  }
  add(
    failed,
    'messages_failed',
    `Messages of the last 7 days that could not be delivered: ${failed}.`,
    '`cellkeep mail list --state failed` shows which and why. `cellkeep mail test ADDRESS` tests the transport.',
  )
  add(
    waiting,
    'messages_waiting',
    `Messages that have been waiting for more than an hour: ${waiting}.`,
    '`cellkeep mail list --state queued` shows them. Check that the mail server and a Cellkeep server are running.',
  )
  if (config.invite_claim !== 'match')
    add(
      linkless,
      'invites_without_link',
      `Open invites without a link: ${linkless}. Only the token of a link claims an invite (CELLKEEP_INVITE_CLAIM is ${config.invite_claim}).`,
      'Send each again with `cellkeep invite send ID`, or delete it.',
    )
  const old = await countUnderOldKeys({ db, sealing: await sealingOf(config) })
  add(
    old,
    'secrets_under_old_keys',
    `Secrets in the database that are not encrypted with the first secret key: ${old}.`,
    'Run `cellkeep keys reseal`, and keep the older keys until then. Secrets that remain have lost their key.',
  )
  return findings
}

async function sealingOf({ secret_keys, database_url, data_dir }: Config) {
  if (secret_keys) return createSealing(secret_keys)
  const kept = database_url === null ? await readPrivateFile(join(data_dir, 'secret_keys')) : undefined
  const listed = kept && 'content' in kept ? kept.content.split(',') : []
  const keys = listed.map((key) => key.trim()).filter(Boolean)
  return keys.length > 0 ? createSealing(keys) : null
}

import { z } from 'zod'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail, Operating } from '../core/operate.ts'
import { account, counted, operation } from '../core/operation.ts'
import { type Sql, sql } from '../db/db.ts'
import { lockForAdmin } from '../roles/admin.ts'
import { Uuid } from '../wire/types.ts'
import { noAccount } from './ending.ts'
import { type LockedAccount, lockAccounts } from './locks.ts'

/** Credentials of one kind: their table, the condition of the rows that count, and the texts of the commands. */
type Credentials = {
  noun: 'session' | 'token'
  table: Sql
  live: Sql
  doc: { admin: string; operator: string }
  confirm: string
}

/** The admin method that ends the credentials of one account, and the operator commands for one and for all. */
export function revokeAll(kind: Credentials) {
  const { noun, doc, confirm } = kind
  const event = eventOf(kind)
  const input = z.strictObject({ account_id: Uuid })
  const admin = mutation({
    doc: doc.admin,
    auth: { role: 'admin' },
    event,
    rate_limit: 'account',
    rate_limit_group: 'admin_write',
    input,
    output: z.object({ ok: z.literal(true), count: z.int() }),
    errors: ['account_not_found'],
    async handler({ account_id }, { account, actor, credential, ...work }) {
      const locked = await lockForAdmin(work.db, account_id, { account, actor, credential })
      const count = await endAll(kind, work, account_id, locked, { credential_type: credential.type })
      return { ok: true as const, count }
    },
  })
  const operator = operation({
    doc: doc.operator,
    input,
    event,
    errors: ['account_not_found'],
    async handler({ account_id }, work) {
      const locked = (await lockAccounts(work.db, [account_id])).get(account_id)
      return { count: await endAll(kind, work, account_id, locked, work.detail) }
    },
    command: {
      name: `${noun} revoke-all`,
      args: { account_id: account },
      phrase: ({ count }) => `${counted(count, noun)} ended.`,
    },
  })
  const everyone = operation({
    doc: `End every ${noun} of every account that exists when this begins.`,
    event,
    ownTransactions: true,
    handler: (_input, { app, operate }) => endForEveryone(app, kind, operate),
    command: {
      name: `${noun} revoke-all --everyone`,
      confirm,
      phrase: ({ count, accounts }) => `${counted(count, noun)} of ${counted(accounts, 'account')} ended.`,
    },
  })
  return { admin, operator, everyone }
}

const eventOf = ({ noun }: Credentials) => `${noun}_revoke_all` as const

/** Ends the credentials of one kind of a locked account, which must be live, and returns how many. */
async function endAll(
  kind: Credentials,
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  account_id: string,
  locked: LockedAccount | undefined,
  detail: Detail,
): Promise<number> {
  const { table, live } = kind
  if (!locked || locked.deleted_at !== null) throw noAccount(eventOf(kind), account_id, detail)
  const count = await db.run(sql`delete from ${table} where account_id = ${account_id}::uuid and ${live}`)
  if (count > 0) audit(eventOf(kind), { count, ...detail }, { target_account_id: account_id })
  return count
}

/** Accounts per transaction: few enough that sign-ins are not held up. */
const batch = 200

/** How many credentials ended, of how many accounts. */
type EndedForEveryone = { count: number; accounts: number }

/**
 * Ends every credential of one kind that exists when the call begins, in one transaction per batch of accounts.
 * Writes one audit row per account that lost something. If it is interrupted, run it again.
 */
async function endForEveryone(
  app: App,
  kind: Credentials,
  operate: <T>(work: (tools: Operating) => Promise<T>) => Promise<T>,
): Promise<EndedForEveryone> {
  const { table, live } = kind
  const event = eventOf(kind)
  const total: EndedForEveryone = { count: 0, accounts: 0 }
  for (let after: string | null = null; ; ) {
    const from: Sql = after === null ? sql.empty : sql`and account_id > ${after}::uuid`
    const next: { account_id: string }[] = await app.db.rows(sql`
      select distinct account_id from ${table} where ${live} ${from}
      order by account_id limit ${sql.raw(batch)}`)
    const ids = next.map(({ account_id }) => account_id)
    if (ids.length === 0) return total
    const ended = await operate(async ({ db, audit, detail }) => {
      await lockAccounts(db, ids)
      const lost = await db.rows<{ account_id: string; count: number }>(sql`
        with ended as (
          delete from ${table} where account_id = any(${ids}::uuid[]) and ${live} returning account_id
        )
        select account_id, count(*) as count from ended group by account_id order by account_id`)
      for (const { account_id, count } of lost)
        audit(event, { count, ...detail }, { target_account_id: account_id })
      return lost
    })
    for (const { count } of ended) total.count += count
    total.accounts += ended.length
    after = ids.at(-1) as string
  }
}

import { z } from 'zod'
import { lockAccounts } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { isOpen, type Ticket } from './tickets.ts'

const Input = z.strictObject({ ticket_id: Uuid })

export const admin_ticket_revoke = mutation({
  doc: 'End a one-time link before it is used. `revoked` is false if it has already ended or never existed.',
  auth: { role: 'admin' },
  event: 'ticket_revoke',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: Input,
  output: z.object({ ok: z.literal(true), revoked: z.boolean() }),
  handler: async ({ ticket_id }, { credential, ...work }) => ({
    ok: true as const,
    revoked: await revoke(work, ticket_id, { credential_type: credential.type }),
  }),
})

/** Takes the lock of the account, or of the row of the invite, before that of the ticket. */
async function revoke(
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  ticket_id: string,
  detail: Detail,
): Promise<boolean> {
  const found = await db.first<Pick<Ticket, 'purpose' | 'account_id' | 'invite_id'>>(sql`
    select purpose, account_id, invite_id from account_ticket where id = ${ticket_id}::uuid`)
  if (!found) return false
  const { purpose, account_id, invite_id } = found
  if (account_id) await lockAccounts(db, [account_id])
  else await db.run(sql`select 1 from invite where id = ${invite_id}::uuid for update`)
  const ended = await db.run(sql`
    update account_ticket t set voided_at = now() where t.id = ${ticket_id}::uuid and ${isOpen}`)
  const target = account_id ? { target_account_id: account_id } : {}
  if (ended > 0) audit('ticket_revoke', { ticket_id, purpose, ...detail }, target)
  return ended > 0
}

export const revokeTicket = operation({
  doc: 'End a one-time link before it is used.',
  input: Input,
  event: 'ticket_revoke',
  handler: async ({ ticket_id }, { detail, ...work }) => ({ revoked: await revoke(work, ticket_id, detail) }),
  command: {
    name: 'ticket revoke',
    args: { ticket_id: 'TICKET' },
    phrase: ({ revoked }) => (revoked ? 'The link no longer works.' : 'There is no such open link.'),
  },
})

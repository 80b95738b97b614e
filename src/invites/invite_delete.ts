import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/declare.ts'
import { recorded } from '../core/mutate.ts'
import type { Via } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { Uuid } from '../wire/types.ts'

const InviteDeleteInput = z.strictObject({ invite_id: Uuid })

export const invite_delete = mutation({
  doc: 'Delete an unclaimed invite, expired or not; a claimed one stays as a record.',
  auth: { role: 'admin' },
  event: 'invite_delete',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: InviteDeleteInput,
  output: z.object({ ok: z.literal(true) }),
  errors: ['invite_not_found'],
  async handler({ invite_id }, { db, audit }) {
    await removeInvite(db, audit, invite_id)
    return { ok: true as const }
  },
})

/** If a deletion and a claim race, the later one sees the row as the earlier one left it. */
async function removeInvite(db: Queryable, audit: Audit, invite_id: string, via: Via = {}): Promise<void> {
  const deleted = await db.run(sql`
    delete from invite where id = ${invite_id}::uuid and claimed_at is null`)
  if (deleted === 0)
    throw recorded('invite_delete', refusal('invite_not_found'), {
      reason: 'invite_not_found',
      attempted_invite_id: invite_id,
      ...via,
    })
  audit('invite_delete', { invite_id, ...via })
}

export const deleteInvite = operation({
  doc: 'Delete an invite that nobody has claimed.',
  input: InviteDeleteInput,
  event: 'invite_delete',
  errors: ['invite_not_found'],
  handler: ({ invite_id }, { db, audit, detail: { via } }): Promise<void> =>
    removeInvite(db, audit, invite_id, { via }),
  command: {
    name: 'invite delete',
    args: { invite_id: 'INVITE' },
    done: { deleted: true },
    phrase: () => 'The invite is deleted.',
  },
})

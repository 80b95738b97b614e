import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { me, tier, touched } from '../access.ts'
import type { Principal } from './grants.ts'

export const cell_grant_revoke = mutation({
  doc: 'Revoke a grant, as a manager of its cell or as the actor it is for. Says whether the caller may still view the cell.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_grant_revoke',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ grant_id: Uuid }),
  output: z.object({ ok: z.literal(true), still_admitted: z.boolean() }),
  errors: ['cell_grant_not_found'],
  async handler({ grant_id }, { actor, db, audit, fail }) {
    const locked = await db.first(sql`
      with ${me(actor.id)}
      select c.id from cell_grant h join cell c on c.id = h.cell_id, me
      where h.id = ${grant_id}::uuid and ${mayRevoke} for no key update of c`)
    if (!locked) throw fail('cell_grant_not_found')
    const removed = await remove(db, actor.id, grant_id)
    if (!removed) throw fail('cell_grant_not_found')
    const { cell_id, actor_id, role, scope_id, account_id } = removed
    const principal: Principal = role === null ? { actor_id: actor_id as string } : { role, scope_id }
    const target = { target_actor_id: actor_id, target_account_id: account_id }
    audit('cell_grant_revoke', { cell_id, grant_id, principal }, target)
    return { ok: true as const, still_admitted: await views(db, actor.id, cell_id) }
  },
})

/** A grantee may leave any live cell. Holders of a role may not: the grant is for the other holders too. */
const mayRevoke = sql`(${tier.manage} or (${tier.live} and coalesce(h.actor_id = me.actor_id, false)))`

type Removed = {
  cell_id: string
  actor_id: string | null
  role: string | null
  scope_id: string | null
  account_id: string | null
}

const remove = (db: Queryable, actor_id: string, grant_id: string): Promise<Removed | undefined> =>
  db.first<Removed>(sql`
    with ${me(actor_id)}, removed as (
      delete from cell_grant h using cell c, me
      where h.id = ${grant_id}::uuid and c.id = h.cell_id and ${mayRevoke}
      returning h.cell_id, h.actor_id, h.role, h.scope_id,
        (select account_id from actor where actor.id = h.actor_id) as account_id
    ), ${touched(sql`select cell_id from removed`)}
    select * from removed`)

/** A separate statement, because the one that deletes the grant still sees it. */
async function views(db: Queryable, actor_id: string, cell_id: string): Promise<boolean> {
  const row = await db.first(sql`
    with ${me(actor_id)}
    select c.id from cell c, me where c.id = ${cell_id}::uuid and ${tier.view}`)
  return row !== undefined
}

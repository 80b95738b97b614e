import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { OrNull, Uuid } from '../../wire/types.ts'
import { me, tier } from '../access.ts'
import { RoleName } from '../cells.ts'
import { CellGrant, grantAtOnce, type Principal, upsertCellGrant } from './grants.ts'

const PrincipalInput = z.union([
  z.strictObject({ kind: z.literal('actor').optional(), actor_id: Uuid }),
  z.strictObject({ kind: z.literal('role').optional(), role: RoleName, scope_id: OrNull(Uuid) }),
])
const principal = PrincipalInput.describe(
  'With a `scope_id`: who holds the role in exactly this scope. Without one: who holds it globally or in any scope.',
)

export const cell_grant_create = mutation({
  doc: 'Let an actor, or the holders of a role, view or edit a cell. A repeated call changes the level.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_grant_create',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ cell_id: Uuid, level: z.enum(['viewer', 'editor']), principal }),
  output: z.object({ grant: CellGrant }),
  errors: [
    'cell_not_found',
    'cell_grant_unknown_role',
    'cell_grant_principal_is_owner',
    'cell_grant_unknown_actor',
    'account_vanished',
  ],
  async handler({ cell_id, level, principal: sent }, { app, actor, db, single, audit, fail }) {
    app.disk.admit()
    const principal: Principal =
      'actor_id' in sent ? { actor_id: sent.actor_id } : { role: sent.role, scope_id: sent.scope_id ?? null }
    const isKnown = 'actor_id' in principal || app.registry.role(principal.role) !== undefined
    const grant = { cell_id, level, principal, granted_by: actor.id }
    const given = isKnown && (await grantAtOnce(single, grant))
    if (given) return { grant: given }

    if (!(await lockManaged(db, actor.id, cell_id))) throw fail('cell_not_found')
    if (!isKnown) throw fail('cell_grant_unknown_role')
    return { grant: await upsertCellGrant(db, audit, grant) }
  },
})

/** Every writer of a cell's grants takes the lock of the cell, and so does every writer of the cell itself. */
const lockManaged = (db: Queryable, actor_id: string, cell_id: string): Promise<unknown> =>
  db.first(sql`
    with ${me(actor_id)}
    select c.id from cell c, me where c.id = ${cell_id}::uuid and ${tier.manage} for no key update of c`)

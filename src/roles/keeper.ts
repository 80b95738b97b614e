import { z } from 'zod'
import { onlyVia } from '../accounts/ending.ts'
import { takeGuardLock } from '../accounts/locks.ts'
import { lockLiveActor } from '../actors/lock.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, sql } from '../db/db.ts'
import { conferGrant } from './grants.ts'
import { type ActiveGrant, activeGrantsWhere, endGrants } from './revoke.ts'

const Input = z.strictObject({ actor_id: Uuid })

export type KeeperTransfer = {
  role_grant_id: string
  /** False where the actor was the keeper already. */
  created: boolean
  /** The grants that ended for it, of removed actors and deleted accounts too. */
  revoked: { role_grant_id: string; actor_id: string }[]
}

/**
 * Makes a live actor the one keeper, in one transaction with the end of every other global keeper grant
 * (contract 2, section 19). Refuses with `actor_not_found`.
 */
export async function transferKeeper(
  app: App,
  input: z.input<typeof Input>,
  operator: Operator,
): Promise<KeeperTransfer> {
  const { actor_id } = parseInput(Input, input)
  for (;;) {
    const done = await operate(app, 'role_grant_create', operator, async (work) => {
      const { db, audit, detail } = work
      const before = (await keepers(db)).map(({ account_id }) => account_id)
      const own = await lockLiveActor(db, actor_id, before)
      await takeGuardLock(db)
      const present = await keepers(db)
      // Another transfer came in between and made a keeper whose account is not locked: begin anew.
      if (present.some(({ account_id }) => account_id !== own && !before.includes(account_id)))
        return undefined

      const { role_grant_id, created } = await conferGrant(
        db,
        audit,
        { actor_id, role: 'keeper' },
        { source: 'keeper_transfer', ...onlyVia(detail) },
      )
      const old = present.filter((grant) => grant.actor_id !== actor_id)
      await endGrants(app, work, old, {
        cause: 'keeper_transfer',
        revoked_by: operator.actor_id ?? null,
        reason: null,
        ...onlyVia(detail),
      })
      return {
        role_grant_id,
        created,
        revoked: old.map(({ id, ...of }) => ({ role_grant_id: id, actor_id: of.actor_id })),
      }
    })
    if (done) return done
  }
}

const keepers = (db: Queryable): Promise<ActiveGrant[]> =>
  activeGrantsWhere(db, sql`g.role = 'keeper' and g.scope_id is null`)

import { z } from 'zod'
import { lockLiveActor, takeGuardLock } from '../accounts/locks.ts'
import { shutBootstrap } from '../bootstrap/lock.ts'
import type { App } from '../core/app.ts'
import type { Fail } from '../core/mutate.ts'
import { type Operating, onlyVia } from '../core/operate.ts'
import { actor, operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { conferGrant } from './grants.ts'
import { type ActiveGrant, activeGrantsWhere, endGrants } from './revoke.ts'

export type KeeperTransfer = {
  role_grant_id: string
  /** False if the actor was the keeper already. */
  created: boolean
  /** The keeper grants that ended, including those of removed actors and deleted accounts. */
  revoked: { role_grant_id: string; actor_id: string }[]
}

/** Makes the grant and ends every other global keeper grant in one transaction. */
export const transferKeeper = operation({
  doc: 'Make an actor the keeper. The previous keeper loses the role, and its account can then be deleted. The bootstrap token stops working.',
  input: z.strictObject({ actor_id: Uuid }),
  event: 'role_grant_create',
  errors: ['actor_not_found'],
  ownTransactions: true,
  async handler({ actor_id }, { app, operate, fail }): Promise<KeeperTransfer> {
    for (;;) {
      const done = await operate((work) => transfer(app, { ...work, fail }, actor_id))
      if (done) return done
    }
  },
  command: {
    name: 'keeper transfer',
    args: { actor_id: actor },
    phrase: (_, { who }) => `${who} is now the keeper.`,
  },
})

/** Undefined if another transfer came in between; try again. */
async function transfer(
  app: App,
  work: Operating & { fail: Fail<'actor_not_found'> },
  actor_id: string,
): Promise<KeeperTransfer | undefined> {
  const { db, audit, detail, by: revoked_by, afterCommit, fail } = work
  // A keeper that is made without the bootstrap uses it up, or the bootstrap would make a second one.
  if ((await shutBootstrap(db)) && app.bootstrap.mode === 'live') afterCommit(app.bootstrap.discard)
  const before = (await keepers(db)).map(({ account_id }) => account_id)
  const own = await lockLiveActor(db, actor_id, fail, before)
  await takeGuardLock(db)
  const present = await keepers(db)
  // There is a new keeper whose account is not locked.
  if (present.some(({ account_id }) => account_id !== own && !before.includes(account_id))) return undefined

  const source = { source: 'keeper_transfer', ...onlyVia(detail) } as const
  const { role_grant_id, created } = await conferGrant(db, audit, { actor_id, role: 'keeper' }, source)
  const old = present.filter((grant) => grant.actor_id !== actor_id)
  const revocation = { cause: 'keeper_transfer', revoked_by, reason: null, ...onlyVia(detail) } as const
  await endGrants(app, work, old, revocation)
  const revoked = old.map(({ id, ...of }) => ({ role_grant_id: id, actor_id: of.actor_id }))
  return { role_grant_id, created, revoked }
}

const keepers = (db: Queryable): Promise<ActiveGrant[]> =>
  activeGrantsWhere(db, sql`g.role = 'keeper' and g.scope_id is null`)

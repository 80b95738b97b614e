import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { insertGrant } from '../roles/grants.ts'
import { builtinRoles } from '../roles/scope.ts'

/**
 * Locks the bootstrap row, before any other lock. Only one transaction that makes the first keeper gets past it;
 * the others are refused with `already_bootstrapped`.
 */
export async function takeBootstrapLock(db: Queryable): Promise<void> {
  const lock = await db.first<{ bootstrapped: boolean }>(sql`
    select bootstrapped from bootstrap_lock where id = 1 for update`)
  if (!lock || lock.bootstrapped) throw refusal('already_bootstrapped')
}

/** Makes a new actor the keeper and an admin, closes the bootstrap for good, and returns the ids of the grants. */
export async function closeBootstrap(db: Queryable, actor_id: string): Promise<string[]> {
  const role_grant_ids: string[] = []
  for (const role of builtinRoles) role_grant_ids.push((await insertGrant(db, { actor_id, role })).id)
  await shutBootstrap(db)
  return role_grant_ids
}

/** Closes the bootstrap for good; false if it was closed before, otherwise takes the bootstrap lock. */
export async function shutBootstrap(db: Queryable): Promise<boolean> {
  return (
    (await db.run(sql`update bootstrap_lock set bootstrapped = true where id = 1 and not bootstrapped`)) > 0
  )
}

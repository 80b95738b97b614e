import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/declare.ts'
import type { SharedStatement } from '../core/single.ts'
import { briefly, type Sql, type Stored, sql } from '../db/db.ts'
import { unplanned } from '../db/unplanned.ts'
import { Uuid } from '../wire/types.ts'
import { isUntouched, me, tier } from './access.ts'

export const cell_delete = mutation({
  doc: 'Delete a cell permanently. Its path is free at once; its edges and grants are no longer reachable.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_delete',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ cell_id: Uuid }),
  output: z.object({ ok: z.literal(true), deleted: z.literal(true) }),
  errors: ['cell_not_found'],
  async handler({ cell_id }, { actor, db, single, audit, fail }) {
    const answer = { ok: true as const, deleted: true as const }
    const key = { cell_id, actor_id: actor.id }
    const record = (write: Audit) => write('cell_delete', { cell_id })
    if (await single<Stored, Key>(deleted([key]), 'stored', record, { write: deletes, key })) return answer

    const locked = await db.first(sql`
      with ${me(actor.id)}
      select c.id from cell c, me where c.id = ${cell_id}::uuid and ${tier.edit} for no key update of c`)
    if (!locked) throw fail('cell_not_found')
    const done = await db.run(sql`
      with ${me(actor.id)}, free as (
        update cell c set ${deletion} from me where c.id = ${cell_id}::uuid and ${tier.edit} returning c.id
      ), ${ungranted} select from free`)
    if (done === 0) throw fail('cell_not_found')
    record(audit)
    return answer
  },
})

/** Max grants of a cell that its deletion removes, so that one shared with very many does not take long to delete. */
const grantsMax = 1000

/**
 * Removes the grants of the cells in `free`. Otherwise lists of those to whom the cells were shared would read them for
 * ever, though nobody can see or revoke them. It waits for no lock of a grant, so that it never deadlocks with a purge.
 */
const ungranted = sql`ungranted as (
  delete from cell_grant where ctid = any(array(
    select g.ctid from free cross join lateral (
      select ctid from cell_grant where cell_id = free.id limit ${sql.raw(grantsMax)} for update skip locked
    ) g
  ))
)`

const deletion = sql`deleted_at = greatest(statement_timestamp(), c.created_at)`

type Key = { cell_id: string; actor_id: string }

const deletes: SharedStatement<Key> = {
  max: 16,
  isFinal: true,
  statement: (keys) => deleted(keys, sql`, ${briefly}`),
}

/**
 * Deletes cells. It never waits for a row lock: the transaction that holds the lock may take away a right that this
 * statement has already checked.
 */
function deleted(keys: readonly Key[], joined: Sql = sql.empty): Sql {
  const cell_ids = keys.map(({ cell_id }) => cell_id)
  return sql`asked as (
      select asked.* from unnest(${unplanned(cell_ids, 'uuid[]')}, ${keys.map(({ actor_id }) => actor_id)}::uuid[])
        with ordinality as asked (cell_id, actor_id, nth)${joined}
    ), free as (
      select asked.nth, one.id from asked cross join lateral (
        with ${me(sql`asked.actor_id`)}
        select c.id from cell c, me where c.id = asked.cell_id and ${tier.edit} and ${isUntouched}
        for no key update of c skip locked
      ) one
    ), stored as (update cell c set ${deletion} from free where c.id = free.id returning free.nth), ${ungranted}`
}

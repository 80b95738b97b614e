import { liveActors } from '../../actors/actors.ts'
import type { App } from '../../core/app.ts'
import { closePage, keyset, type Page } from '../../core/page.ts'
import { type ReadOnly, sql } from '../../db/db.ts'
import { actorCount, atScope, everywhere } from '../../roles/holders.ts'
import { me, tier } from '../access.ts'
import { grantJson } from '../grants/grants.ts'
import { cellJson, type Explained } from './explained.ts'

type Everyone = NonNullable<Explained['everyone']>
type Found = Pick<Explained, 'cell'> & {
  admins: number
  grants: Everyone['grants']
}

/** Who may access a cell: admins, its owner, everybody if it is public, and a page of its grants, oldest first. */
export async function explainEveryone(
  app: App,
  db: Pick<ReadOnly, 'first'>,
  { cell_id, caller }: { cell_id: string; caller: string },
  page: Page,
): Promise<Explained | undefined> {
  const { beyond, inOrder, limited } = keyset(page, { 'g.created_at': 'timestamptz', 'g.id': 'uuid' })
  // Counts the holders of a role in any scope, or in exactly the scope that the cell is shared with.
  const holders = sql`case
    when k.role is null then (select count(*)::int from ${liveActors} where actor.id = k.actor_id)
    when k.scope_id is null then ${actorCount(sql`k.role`, sql`true`)}
    else ${actorCount(sql`k.role`, atScope(sql`k.scope_id`))} end`
  const found = await db.first<Found>(sql`
    with ${me(caller)}, anchor as (
      select c.* from cell c, me where c.id = ${cell_id}::uuid and ${tier.manage}
    )
    select ${cellJson} as cell, ${actorCount('admin', everywhere)} as admins, (
      select coalesce(json_agg(json_build_object('grant', ${grantJson('k')}, 'holders', ${holders})
        order by k.created_at, k.id), '[]')
      from (select * from cell_grant g where g.cell_id = anchor.id and ${beyond} ${inOrder} ${limited}) k
    ) as grants
    from anchor`)
  if (!found) return undefined
  const { cell, admins } = found
  const { rows: grants, next_cursor } = closePage(app, page, found.grants, ({ grant }) => [
    grant.created_at,
    grant.id,
  ])
  const everyone = { public: cell.visibility === 'public', admins, owner: cell.created_by, grants }
  return { cell, verdict: null, reasons: [], near: [], everyone, next_cursor }
}

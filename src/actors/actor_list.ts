import { z } from 'zod'
import { rolesOf } from '../accounts/admin/view.ts'
import { activeGrants } from '../auth/active-grant.ts'
import { account, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import type { RoleGrantSummary } from '../roles/grants.ts'
import { Uuid } from '../wire/types.ts'
import { type ActorEntry, actorColumns } from './actors.ts'

/** An actor with its active grants. Those of a removed actor have no effect, but can still be revoked. */
export type ListedActor = ActorEntry & { role_grants: z.output<typeof RoleGrantSummary>[] }

/** Oldest first; empty for an unknown account. */
export const listActors = operation({
  doc: 'List the actors of an account, removed ones included.',
  input: z.strictObject({ account_id: Uuid }),
  handler: ({ account_id }, { app }) =>
    app.db.rows<ListedActor>(sql`
      select ${actorColumns}, ${activeGrants} as role_grants from actor
      where account_id = ${account_id}::uuid order by created_at, id`),
  command: {
    name: 'actor list',
    args: { account_id: account },
    table: {
      columns: {
        ACTOR: 'id',
        NAME: 'name',
        CREATED: 'created_at',
        REMOVED: 'deleted_at',
        ROLES: ({ role_grants }) => rolesOf(role_grants),
      },
      none: 'It has no actor.',
    },
  },
})

import { z } from 'zod'
import { sql } from '../../db/sql.ts'
import { RoleGrantSummary } from '../../roles/grants.ts'
import { Uuid } from '../../wire/types.ts'
import { CellGrant } from '../grants/grants.ts'

const Tier = z.enum(['view', 'edit', 'manage'])

export const Explained = z.object({
  cell: z.object({
    id: Uuid,
    visibility: z.enum(['private', 'public']),
    created_by: Uuid.nullable(),
    version: z.int(),
  }),
  verdict: z.record(Tier, z.boolean()).nullable(),
  /** Every rule that lets the actor in, the strongest first. */
  reasons: z.array(
    z.object({
      tier: Tier,
      via: z.enum(['owner', 'admin', 'actor_grant', 'role_grant', 'public']),
      cell_grant_id: Uuid.nullable(),
      level: z.enum(['viewer', 'editor']).nullable(),
      role: z.string().nullable(),
      scope_id: Uuid.nullable(),
      /** The grant by which the actor holds that role. */
      role_grant: RoleGrantSummary.nullable(),
    }),
  ),
  /** Near misses: grants that fail to let it in by one condition; at most 20. */
  near: z.array(
    z.object({
      why: z.enum([
        'scope_differs',
        'role_expired',
        'role_revoked',
        'viewer_only',
        'system_cell',
        'actor_removed',
      ]),
      cell_grant_id: Uuid.nullable(),
      role_grant_id: Uuid.nullable(),
    }),
  ),
  /** Who else may access the cell; admins and holders of a role are counted among its first 1000 grants. */
  everyone: z
    .object({
      public: z.boolean(),
      admins: z.int(),
      owner: Uuid.nullable(),
      grants: z.array(z.object({ grant: CellGrant, holders: z.int() })),
    })
    .nullable(),
  next_cursor: z.string().nullable(),
})
export type Explained = z.output<typeof Explained>

/** The explained cell, from the row `anchor`. */
export const cellJson = sql`json_build_object('id', anchor.id, 'visibility', anchor.visibility,
  'created_by', anchor.created_by, 'version', anchor.version)`

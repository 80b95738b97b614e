import { z } from 'zod'
import { query } from '../../core/action.ts'
import { openPage, pageInput } from '../../core/page.ts'
import { RoleGrantSummary } from '../../roles/grants.ts'
import { Uuid } from '../../wire/types.ts'
import { CellGrant } from '../grants/grants.ts'
import { explainEveryone } from './everyone.ts'
import { explainOne } from './one.ts'

const Tier = z.enum(['view', 'edit', 'manage'])

const Explained = z.object({
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
  /** What would let it in but for one thing; at most 20. */
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
  /** Who is let in besides; admins and holders of a role are counted to 1000. */
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

export const cell_access_explain = query({
  doc: 'Why an actor may view, edit or manage a cell, or why not; or who may. Needs the manage tier; for one’s own actor, the view tier.',
  auth: { account: 'required', actor: 'required' },
  rate_limit: 'account',
  rate_limit_group: 'lookup',
  input: z.strictObject({
    cell_id: Uuid,
    actor_id: Uuid.nullish().describe('Null: somebody who is not signed in. Left out: everyone.'),
    ...pageInput(50, 20),
  }),
  output: Explained,
  errors: ['cell_not_found'],
  refine({ cell_id, actor_id, ...sent }, { app, actor }) {
    const bound = { actor: actor.id, cell_id, of: actor_id === undefined ? 'everyone' : actor_id }
    return { cell_id, actor_id, page: openPage(app, 'cell_access_explain', bound, sent) }
  },
  async handler({ cell_id, actor_id, page }, { app, actor, db, fail }) {
    const asked = { cell_id, caller: actor.id }
    const explained =
      actor_id === undefined
        ? await explainEveryone(app, db, asked, page)
        : await explainOne(db, { ...asked, actor_id })
    if (!explained) throw fail('cell_not_found')
    return explained
  },
})

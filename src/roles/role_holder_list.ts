import { z } from 'zod'
import { grantSummary } from '../auth/active-grant.ts'
import type { CursorKey } from '../core/cursor.ts'
import { query } from '../core/declare.ts'
import { closeWalk, openPage, pageInput, pageSize } from '../core/page.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import { RoleGrantSummary } from './grants.ts'
import {
  atScope,
  examinedMax,
  grantsOfRole,
  holderCount,
  inOrderOfPlace,
  liveHolders,
  placeKey,
} from './holders.ts'
import { RoleName, ScopeKind } from './scope.ts'

const Holder = z.object({
  role_grant: RoleGrantSummary,
  actor: z.object({ id: Uuid, name: z.string() }),
  account: z.object({ id: Uuid, username: z.string() }),
})

export const role_holder_list = query({
  doc: 'Who holds a role: its active grants, global ones first, then by scope and age. A page may be short although another follows.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({
    role: RoleName,
    scope_kind: ScopeKind.nullish(),
    scope_id: Uuid.nullish().describe('Only grants at exactly this scope.'),
    ...pageInput(),
  }),
  output: z.object({
    holders: z.array(Holder),
    count: z.int().nullable().describe('On the first page: how many there are, counted to 1000.'),
    next_cursor: z.string().nullable(),
  }),
  refine({ role, scope_kind = null, scope_id = null, ...sent }, { app, actor }) {
    if (scope_kind !== null && scope_id === null)
      throw refusal('invalid_params', {
        issues: [issue(['scope_id'], 'invalid_type', 'Give `scope_id` with `scope_kind`.')],
      })
    const bound = { actor: actor.id, role, scope_kind, scope_id }
    return { role, scope_kind, scope_id, page: openPage(app, 'role_holder_list', bound, sent) }
  },
  async handler({ role, scope_kind, scope_id, page }, { app, db }) {
    const scope = scope_id === null ? undefined : atScope(sql`${scope_id}::uuid`, scope_kind)
    const walked = await db.rows<Row>(sql`
      select ${grantSummary} as role_grant,
        json_build_object('id', actor.id, 'name', actor.name) as actor,
        json_build_object('id', account.id, 'username', account.username) as account,
        ${placeKey} as key, is_live as is_match, nth = ${examinedMax}::int as is_end
      from ${liveHolders(grantsOfRole(role, page.after, scope))}
      where is_live or nth = ${examinedMax}::int
      ${inOrderOfPlace} limit ${sql.raw(pageSize(page.limit))}`)
    const { rows, next_cursor } = closeWalk(app, page, walked, ({ key }) => key)
    return {
      holders: rows.map(({ role_grant, actor, account }) => ({ role_grant, actor, account })),
      count: page.after ? null : await counted(db, holderCount(role, scope)),
      next_cursor,
    }
  },
})

type Row = z.output<typeof Holder> & { key: CursorKey; is_match: boolean; is_end: boolean }

const counted = async (db: Pick<Queryable, 'one'>, count: Sql): Promise<number> =>
  (await db.one<{ count: number }>(sql`select ${count} as count`)).count

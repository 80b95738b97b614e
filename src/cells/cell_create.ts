import { z } from 'zod'
import { mutation } from '../core/action.ts'
import { type Queryable, sql } from '../db/db.ts'
import { holdsAdmin } from '../roles/grants.ts'
import { me } from './access.ts'
import { Cell, cellColumns, cellWriteError, Kind, Path, Visibility } from './cells.ts'
import { type CellData, compactBytes, Data } from './data.ts'
import { mayCreate, validated } from './hooks.ts'

export const cell_create = mutation({
  doc: 'Make a cell owned by the acting actor. Only admins may give it a path.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_create',
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  input: z.strictObject({
    data: Data,
    kind: Kind.nullish(),
    visibility: Visibility.default('private'),
    path: Path.nullish(),
  }),
  output: z.object({ cell: Cell }),
  errors: [
    'cell_path_admin_only',
    'cell_kind_in_data',
    'cell_kind_empty',
    'cell_data_invalid',
    'cell_create_forbidden',
    'cell_path_taken',
    'account_vanished',
  ],
  async handler(
    { data: sent, kind = null, visibility, path = null },
    { app, account, actor, role_grants, db, audit, fail },
  ) {
    const is_admin = holdsAdmin(role_grants)
    if (path !== null && !is_admin) throw fail('cell_path_admin_only')
    if (Object.hasOwn(sent, 'kind')) throw fail('cell_kind_in_data')
    if (kind === '') throw fail('cell_kind_empty')
    const data = await validated(app, kind, sent)
    const caller = { actor_id: actor.id, account_id: account.id, is_admin }
    const wanted = { operation: 'create' as const, kind, visibility, path, data, source_id: null }
    if (!(await mayCreate(app, caller, wanted))) throw fail('cell_create_forbidden')
    const cell = await insertCell(db, actor.id, { kind, visibility, path, data })
    if (!cell) throw fail('cell_path_admin_only')
    audit('cell_create', { cell_id: cell.id })
    return { cell }
  },
})

type NewCell = { kind: string | null; visibility: string; path: string | null; data: CellData }

/** Undefined where a path is given and the actor is no admin at the time of the statement. */
async function insertCell(db: Queryable, actor_id: string, cell: NewCell): Promise<Cell | undefined> {
  const { kind, visibility, path, data } = cell
  const values = sql`${kind}::text, ${visibility}::text, ${path}::text, ${JSON.stringify(data)}::jsonb,
    ${compactBytes(data)}::int, ${actor_id}::uuid`
  const source = path === null ? sql`select ${values}` : sql`select ${values} from me where me.is_admin`
  try {
    return await db.first<Cell>(sql`
      ${path === null ? sql.empty : sql`with ${me(actor_id)}`}
      insert into cell as c (kind, visibility, path, data, data_bytes, created_by) ${source}
      returning ${cellColumns}`)
  } catch (error) {
    throw cellWriteError(error, 'data')
  }
}

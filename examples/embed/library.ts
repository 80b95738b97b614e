/** What this application adds to Cellkeep: a role, rules for cells, and a method. */
import { z } from 'zod'
// In a project of your own: import … from 'cellkeep'
import { type Actions, CellDataIssues, type CellHooks, query, sql } from '../../src/index.ts'

export const roles = [{ name: 'librarian', description: 'Sees the shelf list.', grant_paths: ['admin'] }]

export const hooks: CellHooks = {
  /** Everyone may create private cells, but only admins public ones. */
  authorizeCreate: (caller, { visibility }) => visibility === 'private' || caller.is_admin,
  validateData(kind, data) {
    if (kind === 'book' && typeof data.isbn !== 'string')
      throw new CellDataIssues([{ path: ['isbn'], message: 'A book needs an ISBN.' }])
    return data
  },
}

export const shelf_count = query({
  doc: 'How many live cells there are of each kind.',
  auth: { account: 'required', actor: 'required', roles: ['librarian'] },
  input: z.strictObject({ kind: z.string().optional() }),
  output: z.object({ shelves: z.array(z.object({ kind: z.string().nullable(), cells: z.int() })) }),
  async handler({ kind }, { db }) {
    const shelves = await db.rows<{ kind: string | null; cells: number }>(sql`
      select kind, count(*)::int as cells from cell
      where deleted_at is null and (${kind ?? null}::text is null or kind = ${kind ?? null})
      group by kind order by kind`)
    return { shelves }
  },
})

export const actions = { shelf_count }

/** For the typed client: `createClient<Library>({ url })` knows the built-in methods and these. */
export type Library = Actions & typeof actions

import { AsyncLocalStorage } from 'node:async_hooks'
import { CellDataIssues, type CellHooks, cells, mutation, query, sql, visibleCells } from 'cellkeep'
import { z } from 'zod'
import './vocabulary.ts'

const Page = z.strictObject({
  title: z.string().min(1).max(200),
  body: z.string().max(100_000),
  locked_by: z.uuid().nullable(),
})
const workspace_id = z.uuid()
const page_id = z.uuid()

/** A kind never changes, so a page stays in the workspace in which a writer made it. */
const kindOf = (workspace_id: string): string => `page/${workspace_id}`
const isPage = (kind: string | null): boolean => kind?.startsWith('page/') ?? false
const byPageCreate = new AsyncLocalStorage<true>()

export const hooks: CellHooks = {
  /** Pages are made by `page_create` alone, which asks for the role. */
  authorizeCreate: (_caller, { kind }) => !isPage(kind) || byPageCreate.getStore() === true,
  validateData(kind, data) {
    if (!isPage(kind)) return data
    const page = Page.safeParse(data)
    if (!page.success) throw new CellDataIssues(page.error.issues)
    return page.data
  },
}

const someone = { account: 'required', actor: 'required' } as const
const anyone = { account: 'optional', actor: 'optional' } as const

export const page_create = mutation({
  doc: 'Make a page in a workspace, which its writers may read and edit.',
  auth: { ...someone, roles: [{ role: 'writer', in: (input) => input.workspace_id }] },
  event: 'cell_create',
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  input: z.strictObject({ workspace_id, title: Page.shape.title, body: Page.shape.body }),
  output: z.object({ page_id }),
  errors: ['cell_data_invalid', 'cell_quota_exceeded'],
  async handler({ workspace_id, title, body }, context) {
    const page = { kind: kindOf(workspace_id), data: { title, body, locked_by: null } }
    const { cell } = await byPageCreate.run(true, () => cells.create(context, page))
    const principal = { role: 'writer', scope_id: workspace_id }
    await cells.grant(context, { cell_id: cell.id, level: 'editor', principal })
    return { page_id: cell.id }
  },
})

export const page_list = query({
  doc: 'The pages of a workspace that the caller may see.',
  auth: anyone,
  input: z.strictObject({ workspace_id, cursor: z.string().optional() }),
  output: z.object({
    pages: z.array(z.object({ page_id, title: z.string(), version: z.int() })),
    next_cursor: z.string().nullable(),
  }),
  async handler({ workspace_id, cursor }, context) {
    const page = await cells.list(context, { kind: kindOf(workspace_id), cursor })
    return {
      pages: page.cells.map(({ id, data, version }) => ({ page_id: id, title: String(data.title), version })),
      next_cursor: page.next_cursor,
    }
  },
})

export const page_count = query({
  doc: 'How many pages of a workspace the caller may see.',
  auth: anyone,
  input: z.strictObject({ workspace_id }),
  output: z.object({ pages: z.int() }),
  async handler({ workspace_id }, { actor, db }) {
    return await db.one<{ pages: number }>(sql`
      select count(*)::int as pages from cell c
      where c.kind = ${kindOf(workspace_id)} and ${visibleCells({ actor }, 'c')}`)
  },
})

export const page_lock = mutation({
  doc: 'Keep a page for oneself while editing it, or let it go.',
  auth: someone,
  event: 'page_lock',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ page_id, locked: z.boolean() }),
  output: z.object({ version: z.int() }),
  errors: ['cell_not_found', 'cell_version_conflict', 'page_locked'],
  async handler({ page_id, locked }, context) {
    const { actor, audit, fail } = context
    const { version, data } = (await cells.get(context, { id: page_id })).cell
    if (data.locked_by !== null && data.locked_by !== actor.id)
      throw fail('page_locked', { locked_by: data.locked_by })
    const data_patch = { locked_by: locked ? actor.id : null }
    const { cell } = await cells.update(context, { cell_id: page_id, data_patch, expected_version: version })
    audit('page_lock', { page_id, locked })
    return { version: cell.version }
  },
})

export const page_edit = mutation({
  doc: 'Change the text of a page that nobody else has locked; its author hears of it.',
  auth: someone,
  event: 'cell_update',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ page_id, body: Page.shape.body, expected_version: z.int() }),
  output: z.object({ version: z.int() }),
  errors: ['cell_not_found', 'cell_version_conflict', 'cell_quota_exceeded', 'page_locked'],
  async handler({ page_id, body, expected_version }, context) {
    const { actor, notify, fail } = context
    const { data, created_by } = (await cells.get(context, { id: page_id })).cell
    if (data.locked_by !== null && data.locked_by !== actor.id)
      throw fail('page_locked', { locked_by: data.locked_by })
    const { cell } = await cells.update(context, { cell_id: page_id, data_patch: { body }, expected_version })
    if (created_by !== null && created_by !== actor.id)
      notify({ actor_id: created_by }, 'page_changed', { page_id, version: cell.version })
    return { version: cell.version }
  },
})

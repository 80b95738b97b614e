import { cells, mutation, query, sql, visibleCells } from 'cellkeep'
import { z } from 'zod'
import { byPageCreate, kindOf, Page } from './hooks.ts'

const workspace_id = z.uuid()
const page_id = z.uuid()
const anyone = { account: 'optional', actor: 'optional' } as const

export const page_create = mutation({
  doc: 'Make a page in a workspace, which its writers may read and edit.',
  auth: {
    account: 'required',
    actor: 'required',
    roles: [{ role: 'writer', in: (input) => input.workspace_id }],
  },
  event: 'cell_create',
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  input: z.strictObject({ workspace_id, title: Page.shape.title, body: Page.shape.body }),
  output: z.object({ page_id }),
  errors: ['cell_data_invalid', 'cell_quota_exceeded'],
  async handler({ workspace_id, title, body }, context) {
    const page = { kind: kindOf(workspace_id), data: { title, body } }
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

import { AsyncLocalStorage } from 'node:async_hooks'
import { CellDataIssues, type CellHooks } from 'cellkeep'
import { z } from 'zod'

export const Page = z.strictObject({
  title: z.string().min(1).max(200),
  body: z.string().max(100_000),
  locked_by: z.uuid().optional(),
})

/** A kind never changes, so a page stays in the workspace in which a writer made it. */
export const kindOf = (workspace_id: string): string => `page/${workspace_id}`
const isPage = (kind: string | null): boolean => kind?.startsWith('page/') ?? false

/** Says that `page_create` is at work, which has asked for the role. */
export const byPageCreate = new AsyncLocalStorage<true>()

export const hooks: CellHooks = {
  authorizeCreate: (_caller, { kind }) => !isPage(kind) || byPageCreate.getStore() === true,
  validateData(kind, data) {
    if (!isPage(kind)) return data
    const page = Page.safeParse(data)
    if (!page.success) throw new CellDataIssues(page.error.issues)
    return page.data
  },
}

import { type Cell, cells, mutation } from 'cellkeep'
import { z } from 'zod'
import { Page } from './hooks.ts'
import './vocabulary.ts'

const page_id = z.uuid()
const someone = { account: 'required', actor: 'required' } as const

const isKept = ({ locked_by }: Cell['data'], { id }: { id: string }): boolean =>
  locked_by !== undefined && locked_by !== id

export const page_lock = mutation({
  doc: 'Lock a page while editing it, or unlock it.',
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
    if (isKept(data, actor)) throw fail('page_locked', { locked_by: data.locked_by })
    const data_patch = { locked_by: locked ? actor.id : null } // In a patch, null removes a key.
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
    if (isKept(data, actor)) throw fail('page_locked', { locked_by: data.locked_by })
    const { cell } = await cells.update(context, { cell_id: page_id, data_patch: { body }, expected_version })
    if (created_by !== null && created_by !== actor.id)
      notify({ actor_id: created_by }, 'page_changed', { page_id, version: cell.version })
    return { version: cell.version }
  },
})

import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { openPage, pageInput } from '../../core/page.ts'
import { Uuid } from '../../wire/types.ts'
import { Item, itemEdges } from './edges.ts'
import { edgePage, readEdges } from './list.ts'

export const cell_item_list = query({
  doc: 'The items of a cell by position, or the items that lead to it by age. Lists only those whose other end the caller may view.',
  auth: { account: 'required', actor: 'required' },
  replica: true,
  input: z.strictObject({
    parent_id: Uuid.optional(),
    child_id: Uuid.optional(),
    ...pageInput(edgePage.max, edgePage.default),
  }),
  output: z.object({ items: z.array(Item), next_cursor: z.string().nullable() }),
  errors: ['cell_item_list_requires_parent_or_child', 'cell_not_found'],
  refine({ parent_id, child_id, ...sent }, { app, actor, fail }) {
    const page = openPage(app, 'cell_item_list', { actor: actor.id, parent_id, child_id }, sent)
    if ((parent_id === undefined) === (child_id === undefined))
      throw fail('cell_item_list_requires_parent_or_child')
    return { from: parent_id, to: child_id, page }
  },
  async handler(list, { app, actor, db, fail }) {
    const read = await readEdges<Item>({ app, db, actor_id: actor.id }, itemEdges, list)
    if (!read) throw fail('cell_not_found')
    return { items: read.rows, next_cursor: read.next_cursor }
  },
})

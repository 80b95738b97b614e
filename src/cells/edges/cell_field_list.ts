import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { openPage, pageInput } from '../../core/page.ts'
import { Uuid } from '../../wire/types.ts'
import { Field, fieldEdges } from './edges.ts'
import { edgePage, readEdges } from './list.ts'

export const cell_field_list = query({
  doc: 'The fields of a cell by name, or the fields that lead to it by age. Lists only those whose other end the caller may view.',
  auth: { account: 'required', actor: 'required' },
  replica: true,
  input: z.strictObject({
    source_id: Uuid.optional(),
    target_id: Uuid.optional(),
    ...pageInput(edgePage.max, edgePage.default),
  }),
  output: z.object({ fields: z.array(Field), next_cursor: z.string().nullable() }),
  errors: ['cell_field_list_requires_source_or_target', 'cell_not_found'],
  refine({ source_id, target_id, ...sent }, { app, actor, fail }) {
    const page = openPage(app, 'cell_field_list', { actor: actor.id, source_id, target_id }, sent)
    if ((source_id === undefined) === (target_id === undefined))
      throw fail('cell_field_list_requires_source_or_target')
    return { from: source_id, to: target_id, page }
  },
  async handler(list, { app, actor, db, fail }) {
    const read = await readEdges<Field>({ app, db, actor_id: actor.id }, fieldEdges, list)
    if (!read) throw fail('cell_not_found')
    return { fields: read.rows, next_cursor: read.next_cursor }
  },
})

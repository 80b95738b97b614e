import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { openPage, pageInput } from '../../core/page.ts'
import { Uuid } from '../../wire/types.ts'
import { explainEveryone } from './everyone.ts'
import { Explained } from './explained.ts'
import { explainOne } from './one.ts'

export const cell_access_explain = query({
  doc: 'Why an actor may view, edit or manage a cell, or why not; or who may. Needs the manage tier; for the acting actor itself, the view tier.',
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

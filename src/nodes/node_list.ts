import { operation } from '../core/operation.ts'
import { readNodes } from './nodes.ts'

export const nodes = operation({
  doc: 'List the processes that serve this database, and what is wrong with each.',
  handler: async (_input, { app }) => ({ nodes: await readNodes(app.db.readOnly) }),
  command: {
    name: 'nodes',
    table: {
      columns: {
        NODE: 'id',
        NAME: 'name',
        VERSION: 'version',
        STEP: 'known_step',
        STATE: ({ state, wanted }) =>
          wanted === 'drain' && state !== 'drained' ? `${state}, to drain` : state,
        SEEN: 'seen_at',
        STARTED: 'started_at',
        MARKS: ({ marks }) => marks.join('; '),
      },
      none: 'No process serves this database.',
    },
  },
})

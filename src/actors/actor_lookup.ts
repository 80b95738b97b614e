import { z } from 'zod'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { ActorLabel, type LabelRow, labelColumns, liveActors, toLabel } from './actors.ts'

const ACTOR_LOOKUP_IDS_MAX = 50

export const actor_lookup = query({
  doc: 'Labels of actors by id, in no particular order. Unknown and removed actors are left out.',
  auth: { account: 'required', actor: 'none' },
  replica: true,
  rate_limit: 'account',
  rate_limit_group: 'lookup',
  input: z.strictObject({ ids: z.array(Uuid).min(1).max(ACTOR_LOOKUP_IDS_MAX) }),
  output: z.object({ actors: z.array(ActorLabel) }),
  async handler({ ids }, { db }) {
    const rows = await db.point<LabelRow>(sql`
      select ${labelColumns} from ${liveActors} where actor.id = any(${[...new Set(ids)]}::uuid[])`)
    return { actors: rows.map(toLabel) }
  },
})

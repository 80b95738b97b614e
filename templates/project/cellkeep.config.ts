import { CellDataIssues, defineConfig, query, sql } from 'cellkeep'
import { z } from 'zod'

/** How many notes there are of each label, for those who hold the role `curator`. */
const note_labels = query({
  doc: 'How many notes carry each label.',
  auth: { role: 'curator' },
  input: z.strictObject({ limit: z.int().min(1).max(100).default(20) }),
  output: z.object({ labels: z.array(z.object({ label: z.string(), notes: z.int() })) }),
  async handler({ limit }, { db }) {
    const labels = await db.rows<{ label: string; notes: number }>(sql`
      select data->>'label' as label, count(*)::int as notes from cell
      where kind = 'note' and deleted_at is null
      group by 1 order by 2 desc, 1 limit ${limit}`)
    return { labels }
  },
})

export const actions = { note_labels }

export default defineConfig({
  roles: [{ name: 'curator', description: 'Sees the labels of all notes.', grant_paths: ['admin'] }],
  actions,
  hooks: {
    validateData(kind, data) {
      if (kind === 'note' && typeof data.label !== 'string')
        throw new CellDataIssues([{ path: ['label'], message: 'A note needs a label.' }])
      return data
    },
  },
})

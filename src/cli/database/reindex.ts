import { expectedColumns } from '../../db/migration/expected-columns.ts'
import { remedyText } from '../../db/migration/patience.ts'
import { reindex as rebuild } from '../../db/reindex.ts'
import { command, perhaps, WrongUsage } from '../shell/command.ts'
import { erase, withProgress } from '../shell/progress.ts'
import { withDatabase } from '../with-service.ts'

export const reindex = command({
  name: 'reindex',
  usage: '[--table TABLE]',
  summary: 'Rebuild indexes that are much larger than their content. The service may keep running.',
  details:
    'Rebuilds indexes with more than 30 % unused space, one at a time. Each needs room on the disk for its new copy.',
  options: { table: { type: 'string' } },
  run: ({ options: { table }, out, io }) => {
    const tables = [...expectedColumns().keys()]
    if (table !== undefined && !tables.includes(table))
      throw new WrongUsage(`There is no table ${table}${perhaps(table, tables)}`)
    return withDatabase(io, async ({ connection }) => {
      const reindexed = await rebuild(connection, {
        table,
        onWait: () => void io.stderr.write('Waiting for another process that is building indexes.\n'),
        onBlocked: (blocker) =>
          void io.stderr.write(`${io.stderr.isTTY ? erase : ''}Waiting for ${remedyText(blocker)}.\n`),
        around: (index, work) =>
          withProgress(io, `blocks of ${index}`, work, { everySeconds: 1, fields: { index } }),
      })
      const lines = reindexed.map((one) => `${one.index}: ${mb(one.before_bytes)} → ${mb(one.after_bytes)}`)
      out.result({ reindexed }, lines.join('\n') || 'No index needs to be rebuilt.')
    })
  },
})

const mb = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import type { AuditFilter } from '../audit/export.ts'
import { StartError } from '../errors.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { withService } from './with-service.ts'

const exportCommand = subcommand('audit', {
  name: 'export',
  usage: '[--since-seq N] [--until-seq N] [--event-type T] [--outcome O] [--account UUID] [--out FILE]',
  summary: 'Write the audit log as JSON Lines, oldest first.',
  options: {
    'since-seq': { type: 'string' },
    'until-seq': { type: 'string' },
    'event-type': { type: 'string' },
    outcome: { type: 'string' },
    account: { type: 'string' },
    out: { type: 'string' },
  },
  run: ({ options, io }) => {
    const filter = {
      ...seqOf('since_seq', options['since-seq']),
      ...seqOf('until_seq', options['until-seq']),
      ...(options['event-type'] !== undefined && { event_type: options['event-type'] }),
      ...(options.outcome !== undefined && { outcome: options.outcome as AuditFilter['outcome'] }),
      ...(options.account !== undefined && { account_id: options.account }),
    }
    return withService(io, async ({ operations }) => {
      const rows = await operations.exportAudit(filter)
      const target =
        options.out === undefined ? standard(io.stdout) : await file(resolve(io.cwd, options.out))
      let count = 0
      let last_seq: number | null = null
      try {
        for await (const row of rows) {
          await target.write(`${JSON.stringify(row)}\n`)
          count += 1
          last_seq = row.seq
        }
      } finally {
        await target.end()
      }
      io.stderr.write(`${JSON.stringify({ rows: count, last_seq })}\n`)
    })
  },
})

type Target = { write(line: string): unknown; end(): unknown }

const standard = (stdout: { write(text: string): unknown }): Target => ({
  write: (line) => stdout.write(line),
  end: () => undefined,
})

/** A new file for its owner only; waits where the disk is slower than the database. */
async function file(path: string): Promise<Target> {
  const stream = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  await once(stream, 'open').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'EEXIST' ? 'it exists already; choose another name' : error.code
    throw new StartError('cannot_write', `${path} cannot be made: ${why}.`, 1, { cause: error })
  })
  return {
    write: async (line) => {
      if (!stream.write(line)) await once(stream, 'drain')
    },
    end: async () => {
      stream.end()
      await finished(stream)
    },
  }
}

function seqOf(
  key: 'since_seq' | 'until_seq',
  text: string | undefined,
): Partial<Record<typeof key, number>> {
  if (text === undefined) return {}
  if (!/^\d{1,16}$/.test(text)) throw new WrongUsage(`--${key.replace('_', '-')} takes a whole number.`)
  return { [key]: Number(text) }
}

export const audit = group({
  name: 'audit',
  summary: 'What happened: every sign-in, change and refusal that is recorded.',
  details:
    'One JSON object per line. `seq` rises without telling how many rows there are; standard error ends with the\nlast one, and --since-seq with it goes on from there without a gap or a repeat.\n\nExamples:\n  cellkeep audit export --since-seq 0\n  cellkeep audit export --event-type login --outcome failure\n  cellkeep audit export --out audit.jsonl',
  commands: [exportCommand],
})

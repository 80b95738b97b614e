import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { StartError } from '../errors.ts'
import type { CommandIo } from './output.ts'
import { withProgress } from './progress.ts'

/** Writes rows as JSON lines to standard output or a new file, and then a summary to standard error. */
export async function writeLines(
  rows: AsyncIterable<unknown>,
  summary: (last: unknown) => Record<string, unknown>,
  out: unknown,
  io: CommandIo,
): Promise<void> {
  const target = typeof out === 'string' ? await newFile(resolve(io.cwd, out)) : toStdout(io.stdout)
  let count = 0
  let last: unknown
  // Rows on the terminal already show the progress.
  const shown = typeof out === 'string' ? io : { stderr: { write: () => {} } }
  try {
    await withProgress(shown, 'rows', async (progress) => {
      for await (const row of rows) {
        await target.write(`${JSON.stringify(row)}\n`)
        count += 1
        last = row
        progress(count)
      }
    })
  } finally {
    await target.end()
  }
  io.stderr.write(`${JSON.stringify({ rows: count, ...summary(last) })}\n`)
}

type Target = { write(line: string): unknown; end(): unknown }

const toStdout = (stdout: CommandIo['stdout']): Target => ({
  write: (line) => stdout.write(line),
  end: () => undefined,
})

/** Creates a file for its owner only. Writes wait for the disk if it is slower than the database. */
export async function newFile(path: string): Promise<Target> {
  const stream = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  await once(stream, 'open').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'EEXIST' ? 'the file exists already; choose another name' : error.code
    throw new StartError('cannot_write', `${path} cannot be created: ${why}.`, 1, { cause: error })
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

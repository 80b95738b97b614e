import { once } from 'node:events'
import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { syncName } from '../../files/private-file.ts'
import { unwritable } from '../../files/unwritable.ts'
import type { CommandIo } from './output.ts'
import { withProgress } from './progress.ts'

/**
 * Writes rows as JSON lines to standard output or a new file, and then a summary to standard error. No part of a file
 * is left if that fails, or if `interrupt` aborts. If standard output stops taking lines there is no summary: it is
 * unknown which row arrived last, and a later export must not continue after it.
 */
export async function writeLines(
  rows: AsyncIterable<unknown>,
  summary: (last: unknown) => Record<string, unknown>,
  out: unknown,
  io: CommandIo,
  interrupt: AbortSignal,
): Promise<void> {
  const target = typeof out === 'string' ? await newFile(resolve(io.cwd, out)) : toStdout(io)
  let count = 0
  let last: unknown
  // Rows on the terminal already show the progress.
  const shown = typeof out === 'string' ? io : { stderr: { write: () => {} } }
  try {
    await withProgress(shown, 'rows', async (progress) => {
      for await (const row of rows) {
        interrupt.throwIfAborted()
        if (target.cut?.aborted) break
        await target.write(`${JSON.stringify(row)}\n`)
        count += 1
        last = row
        progress(count)
      }
    })
    await target.end()
    interrupt.throwIfAborted()
  } catch (error) {
    await target.discard()
    throw error
  }
  if (target.cut?.aborted) return
  io.stderr.write(`${JSON.stringify({ rows: count, ...summary(last) })}\n`)
}

type Target = {
  write(line: string): unknown
  end(): unknown
  discard(): unknown
  cut?: AbortSignal | undefined
}

const toStdout = ({ stdout, cut }: CommandIo): Target => ({
  cut,
  write: (line) => stdout.write(line),
  // A failed write is reported only after the turn that made it.
  end: () => nextTurn(),
  discard: () => undefined,
})

/** Creates a file for its owner only. Writes wait for the disk if it is slower than the database. */
export async function newFile(path: string): Promise<Target> {
  const failed = unwritable(path)
  const file = await open(path, 'wx', 0o600).catch(failed)
  // On the disk before the summary is: what continues after it never exports these rows again.
  const stream = file.createWriteStream({ flush: true })
  const ended = finished(stream).catch(failed)
  // A write that fills the buffer reports an error that occurs before it.
  ended.catch(() => {})
  return {
    write: async (line) => {
      if (stream.write(line)) return
      await (stream.errored ? ended : once(stream, 'drain').catch(failed))
    },
    end: async () => {
      stream.end()
      await ended
      await syncName(path).catch(failed)
    },
    discard: async () => {
      stream.destroy()
      await rm(path, { force: true })
    },
  }
}

import type { CommandIo } from './output.ts'

/** `done` of about `of`, in the same unit; without `of`, only a count. `table`: the current one. */
export type Progress = (done: number, of?: number, table?: string) => void

const barLength = 30
/** Rewriting the line more often would only cost time. */
const everyMs = 100
/** A rate measured earlier would mean nothing. */
const rateAfterMs = 1000

/** Removes the line of the progress from the terminal, for text in its place. */
export const erase = '\r\u001b[K'

/**
 * Runs long work and shows its progress on one line of the terminal, which is removed at the end. If standard error is
 * no terminal, a line is written every `everySeconds`, as JSON if there are `fields`; 0, the default, writes none.
 */
export async function withProgress<T>(
  { stderr }: Pick<CommandIo, 'stderr'>,
  unit: string,
  work: (progress: Progress) => Promise<T>,
  { everySeconds = 0, fields }: { everySeconds?: number; fields?: object } = {},
): Promise<T> {
  const { isTTY } = stderr
  if (!isTTY && everySeconds === 0) return await work(() => {})
  const begun = performance.now()
  let shownAt = isTTY ? 0 : begun
  let isShown = false
  try {
    return await work((done, of, table) => {
      const now = performance.now()
      if (now - shownAt < (isTTY ? everyMs : everySeconds * 1000)) return
      shownAt = now
      isShown = true
      const text = `${line(done, of)} ${unit}${rate(done, of, now - begun)}${table ? `, ${table}` : ''}`
      if (isTTY) stderr.write(`${erase}${text}`)
      else stderr.write(`${fields ? JSON.stringify({ ...fields, table, done, of }) : text}\n`)
    })
  } finally {
    if (isTTY && isShown) stderr.write(erase)
  }
}

function line(done: number, of: number | undefined): string {
  const count = done.toLocaleString('en')
  if (!of) return count
  // An estimate may be too low.
  const part = Math.min(1, done / of)
  const bar = '#'.repeat(Math.floor(part * barLength)).padEnd(barLength, '.')
  return `[${bar}] ${String(Math.floor(part * 100)).padStart(3)} %  ${count}`
}

function rate(done: number, of: number | undefined, ms: number): string {
  if (ms < rateAfterMs || done === 0) return ''
  const perSecond = `, ${Math.round((done / ms) * 1000).toLocaleString('en')} a second`
  return of ? `${perSecond}, ${Math.ceil(Math.max(0, ((of - done) / done) * ms) / 1000)} s left` : perSecond
}

import type { CommandIo } from './output.ts'

/** `done` of about `of`, in the same unit; without `of` only counted. */
export type Progress = (done: number, of?: number) => void

const barLength = 30
/** Rewriting the line more often would only cost time. */
const everyMs = 100

/**
 * Runs long work and shows how far it is on one line of the terminal, which goes away at the end. Nothing is written
 * where standard error is no terminal.
 */
export async function withProgress<T>(
  { stderr }: Pick<CommandIo, 'stderr'>,
  unit: string,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  if (!stderr.isTTY) return await work(() => {})
  let shownAt = 0
  const erase = '\r\u001b[K'
  try {
    return await work((done, of) => {
      const now = performance.now()
      if (now - shownAt < everyMs) return
      shownAt = now
      stderr.write(`${erase}${line(done, of)} ${unit}`)
    })
  } finally {
    if (shownAt > 0) stderr.write(erase)
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

import { execFile, execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Yields a sentence for each thing that holds; throws for one that does not. */
export type Check = () => AsyncGenerator<string>

/** A check cannot run here; the message says what is missing. */
export class NotRun extends Error {}

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const packaging = (file: string): string => `${root}packaging/${file}`

const has = (program: string): boolean => {
  try {
    execFileSync('sh', ['-c', 'command -v "$1"', 'sh', program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Installs the Debian package of a program that is missing, if this process may. */
export function need(program: string, debian = program): void {
  if (has(program)) return
  if (process.getuid?.() === 0 && has('apt-get'))
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      execFileSync('apt-get', ['install', '-y', '--no-install-recommends', debian], { stdio: 'ignore', env })
    } catch {
      // Reported below.
    }
  if (!has(program)) throw new NotRun(`${program} is not installed here (Debian: ${debian})`)
}

export const run = promisify(execFile)

/** Waits for what has no event of its own; rejects after `seconds`. */
export async function until(what: string, isTrue: () => Promise<boolean>, seconds = 30): Promise<void> {
  const end = performance.now() + seconds * 1000
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > end) throw new Error(`${what}: not within ${seconds} s`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

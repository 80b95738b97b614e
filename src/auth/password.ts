import { randomBytes } from 'node:crypto'
import { parseOptions } from '@node-rs/argon2'
import { createFairQueue } from '../limits/fair-queue.ts'
import { hashThreads, jobsPerThread, type RunHash } from './hash-threads.ts'

/** How often a password is verified while the stored hash changes under it (contract 2, section 4). */
export const verificationsMax = 3

export type PasswordsOptions = {
  /** Hashes computed at once, each on a thread of its own. */
  concurrency: number
  /** Jobs that may wait beyond those; more are refused as `busy`. */
  queueMax: number
  /** Memory in KiB, passes, lanes. */
  argon2: { memory: number; time: number; parallelism: number }
  /** Computes a hash elsewhere; left out: on `concurrency` hashing threads of the process. */
  run?: RunHash
}

export interface Passwords {
  /**
   * A PHC string: Argon2id, 16-byte salt, 32-byte output. Rejects with `busy` (503) when the queue is full. `from`
   * tells who shares a turn of it, such as a client address; left out: operators.
   */
  hash(password: string, from?: string): Promise<string>
  /**
   * Costs exactly one verification whatever is stored: undefined (no such account) and a malformed hash
   * are verified against a dummy, then false. Rejects with `busy` (503) when the queue is full.
   */
  verify(storedHash: string | undefined, password: string, from?: string): Promise<boolean>
  /** True when the hash was made with other parameters than the configured ones. */
  isOutdated(storedHash: string): boolean
  /** Whether a job given now would be taken. */
  hasRoom(): boolean
  /** Jobs that wait for a thread. */
  readonly depth: number
}

/** Password hashing behind one bounded queue, in which addresses take turns. */
export function createPasswords({
  concurrency,
  queueMax,
  argon2,
  run = hashThreads(concurrency),
}: PasswordsOptions): Passwords {
  const settings = {
    memoryCost: argon2.memory,
    timeCost: argon2.time,
    parallelism: argon2.parallelism,
    outputLen: 32,
  }
  // Some are handed over ahead, so that no thread waits for its next job.
  const queue = createFairQueue(jobsPerThread * concurrency, concurrency + queueMax)
  const dummy = hashOfNothing(settings)
  const current = parseOptions(dummy)

  return {
    hash: (password, from = '') => queue.run(from, () => run('hash', password, settings)),
    verify: (storedHash, password, from = '') =>
      queue.run(from, async () => {
        const usable = storedHash !== undefined && isUsable(storedHash, settings)
        const matches = await run('verify', usable ? storedHash : dummy, password)
        return usable && matches
      }),
    isOutdated(storedHash) {
      const made = parse(storedHash)
      if (made === undefined) return true
      return (Object.keys(current) as (keyof Parameters)[]).some((key) => made[key] !== current[key])
    },
    hasRoom: queue.hasRoom,
    get depth() {
      return Math.max(0, queue.size - concurrency)
    },
  }
}

type Settings = { memoryCost: number; timeCost: number; parallelism: number; outputLen: number }

/** A hash of the current cost that no password has: its output is random. */
function hashOfNothing({ memoryCost, timeCost, parallelism, outputLen }: Settings): string {
  const [salt, output] = [16, outputLen].map((size) =>
    randomBytes(size).toString('base64').replaceAll('=', ''),
  )
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${output}`
}

type Parameters = ReturnType<typeof parseOptions>

function parse(storedHash: string): Parameters | undefined {
  try {
    return parseOptions(storedHash)
  } catch {
    return undefined
  }
}

/** Past these a stored hash counts as corrupt: computing it would take the process's memory or a thread for long. */
const costMax = { memoryCost: 1_048_576, timeCost: 64, parallelism: 64 }

function isUsable(storedHash: string, configured: typeof costMax): boolean {
  const made = parse(storedHash)
  if (made === undefined) return false
  const keys = ['memoryCost', 'timeCost', 'parallelism'] as const
  return keys.every((key) => made[key] <= Math.max(costMax[key], configured[key]))
}

import { randomBytes } from 'node:crypto'
import { parseOptions } from '@node-rs/argon2'
import { sql } from '../db/sql.ts'
import { createFairQueue } from '../limits/fair-queue.ts'
import { noObserver, type Observer, since } from '../observe/observer.ts'
import { isForeign } from './foreign-hashes.ts'
import { type RunHash, runHash } from './hash-threads.ts'

/** Stored for an account that has no password: none verifies against it. */
export const noPassword = '*'
/** Whether `account` has a password. */
export const hasPassword = sql.raw(`account.password_hash <> '${noPassword}'`)

/** Max verifications of one attempt: it verifies again if the stored hash changed meanwhile. */
export const verificationsMax = 3

export type PasswordsOptions = {
  /** Hashes computed in parallel, each on its own thread. */
  concurrency: number
  /** Max waiting jobs; further ones are refused as `busy`. */
  queueMax: number
  /** Memory in KiB, iterations, lanes. */
  argon2: { memory: number; time: number; parallelism: number }
  /** Computes a hash. Default: on a hashing thread of the process. */
  run?: RunHash
  observer?: Observer
}

export interface Passwords {
  /**
   * A PHC string: Argon2id, 16-byte salt, 32-byte output. Rejects with `busy` (503) if the queue is full. Jobs
   * with the same `from`, such as a client address, share a turn in the queue; operators leave it out.
   */
  hash(password: string, from?: string): Promise<string>
  /**
   * Always costs one verification: for undefined (no such account) and for a malformed hash it verifies a dummy and
   * resolves to false. Accepts hashes of other systems too. Rejects with `busy` (503) if the queue is full.
   */
  verify(storedHash: string | undefined, password: string, from?: string): Promise<boolean>
  /** True if the hash uses an algorithm or parameters other than the configured ones. */
  isOutdated(storedHash: string): boolean
  /** True if the queue would accept a job now. */
  hasRoom(): boolean
  /** Jobs waiting for a thread. */
  readonly depth: number
}

/** Password hashing behind a bounded queue in which addresses take turns. */
export function createPasswords({
  concurrency,
  queueMax,
  argon2,
  run = runHash,
  observer = noObserver,
}: PasswordsOptions): Passwords {
  const settings = {
    memoryCost: argon2.memory,
    timeCost: argon2.time,
    parallelism: argon2.parallelism,
    outputLen: 32,
  }
  const queue = createFairQueue(concurrency, concurrency + queueMax)
  const inTurn = <T>(from: string, job: () => Promise<T>): Promise<T> => {
    const asked = performance.now()
    const queued = (): Promise<T> =>
      queue.run(from, () => {
        observer.observe('hash_wait_seconds', since(asked))
        return job()
      })
    return observer.tracer?.span('hash', {}, queued) ?? queued()
  }
  const dummy = hashOfNothing(settings)
  const current = parseOptions(dummy)

  return {
    hash: (password, from = '') => inTurn(from, () => run('hash', password, settings)),
    verify: (storedHash, password, from = '') =>
      inTurn(from, async () => {
        if (storedHash !== undefined && isForeign(storedHash))
          return await run('verifyForeign', storedHash, password)
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

/** A hash with the current cost that matches no password: its output is random. */
function hashOfNothing({ memoryCost, timeCost, parallelism, outputLen }: Settings): string {
  const [salt, output] = [16, outputLen].map((size) =>
    randomBytes(size).toString('base64').replaceAll('=', ''),
  )
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${output}`
}

type Parameters = ReturnType<typeof parseOptions>

function parse(storedHash: string): Parameters | undefined {
  // Checked first, because creating the library's error takes longer than everything else here.
  if (!storedHash.startsWith('$argon2')) return undefined
  try {
    return parseOptions(storedHash)
  } catch {
    return undefined
  }
}

/** True for what an account may store: a hash of ours or of another system, or `noPassword`. */
export const isStoredHash = (text: string): boolean =>
  text === noPassword || parse(text) !== undefined || isForeign(text)

/** A stored hash above these counts as corrupt: computing it would exhaust memory or block a thread for long. */
const costMax = { memoryCost: 1_048_576, timeCost: 64, parallelism: 64 }

function isUsable(storedHash: string, configured: typeof costMax): boolean {
  const made = parse(storedHash)
  if (made === undefined) return false
  const keys = ['memoryCost', 'timeCost', 'parallelism'] as const
  return keys.every((key) => made[key] <= Math.max(costMax[key], configured[key]))
}

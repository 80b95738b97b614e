import type { Held, Limiter } from '../../src/limits/limiter.ts'
import { createMemoryLimiter } from '../../src/limits/memory-limiter.ts'
import { createPostgresLimiter } from '../../src/limits/postgres-limiter.ts'
import type { TestService } from '../../src/testing/index.ts'

/** Both limiter stores, for the tests of their common behaviour. */
export const stores = ['memory', 'postgres'] as const
export type Store = (typeof stores)[number]

type TestLimiter = {
  limiter: Limiter
  /** The clock of the limiter; only the test moves it. */
  clock: { ms: number }
  /** How many of this number of charges are admitted. */
  chargeAll(key: string, times: number): Promise<number>
}

/** A limiter with its own buckets whose slots never time out. */
export function testLimiter(
  store: Store,
  { service }: Pick<TestService, 'service'>,
  rule: { max: number; windowMs: number },
): TestLimiter {
  const clock = { ms: 5_000_000 }
  const now = () => clock.ms
  const { db, log } = service.app
  const limiter =
    store === 'memory'
      ? createMemoryLimiter({ ...rule, now })
      : createPostgresLimiter({ db, log, name: `test ${made++}`, ...rule, now, leaseMs: 1e12 })
  return { limiter, clock, chargeAll: (key, times) => chargeAll(limiter, key, times) }
}
let made = 0

export async function chargeAll(limiter: Limiter, key: string, times: number): Promise<number> {
  let admitted = 0
  for (let i = 0; i < times; i++) if ((await limiter.charge(key)).ok) admitted++
  return admitted
}

/** Takes a slot that must be there. */
export async function take(limiter: Limiter, key: string): Promise<Held> {
  const held = await limiter.hold(key)
  if (!held.ok) throw new Error('refused')
  return held
}

export const refused = (retryAfter: number) => ({ ok: false, retryAfter })
/** The refusal when all slots are taken by running attempts. */
export const pending = { ok: false, retryAfter: 1, isPending: true }

import { hash, verify } from '@node-rs/argon2'
import type { PasswordsOptions } from '../src/auth/password.ts'

/**
 * Measures the bare Argon2id rate of the machine: verifications per second by the library alone, in its own
 * process. It replies to a message `{ options, seconds }` with the rate.
 */
type ArgonJob = { options: PasswordsOptions; seconds: number }

process.on('message', ({ options, seconds }: ArgonJob) =>
  measure(options, seconds).then((rate) => process.send?.(rate)),
)

async function measure({ argon2, concurrency }: PasswordsOptions, seconds: number): Promise<number> {
  const { memory: memoryCost, time: timeCost, parallelism } = argon2
  const stored = await hash('bench password', { memoryCost, timeCost, parallelism })
  const started = performance.now()
  const until = started + seconds * 1000
  let done = 0
  const worker = async (): Promise<void> => {
    for (; performance.now() < until; done++) await verify(stored, 'bench password')
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return done / ((performance.now() - started) / 1000)
}

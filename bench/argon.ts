import { createPasswords, type PasswordsOptions } from '../src/auth/password.ts'

/**
 * The bare Argon2id rate of the machine: verifications per second with nothing around them, in a process
 * of its own. A message `{ options, seconds }` is answered with the rate.
 */
export type ArgonJob = { options: PasswordsOptions; seconds: number }

process.on('message', ({ options, seconds }: ArgonJob) =>
  measure(options, seconds).then((rate) => process.send?.(rate)),
)

async function measure(options: PasswordsOptions, seconds: number): Promise<number> {
  const passwords = await createPasswords(options)
  const hash = await passwords.hash('bench password')
  const started = performance.now()
  const until = started + seconds * 1000
  let done = 0
  const worker = async (): Promise<void> => {
    for (; performance.now() < until; done++) await passwords.verify(hash, 'bench password')
  }
  await Promise.all(Array.from({ length: options.concurrency }, worker))
  return done / ((performance.now() - started) / 1000)
}

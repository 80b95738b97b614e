import type { PasswordsOptions } from '../src/auth/password.ts'
import { resolveOptions } from '../src/config/config.ts'

/** The default password hashing of a server. */
export function defaultHashing(): PasswordsOptions {
  const { config } = resolveOptions({})
  const { memoryCost, timeCost, parallelism } = config.argon2
  return {
    concurrency: config.hash_concurrency,
    queueMax: config.hash_queue_max,
    argon2: { memory: memoryCost, time: timeCost, parallelism },
  }
}

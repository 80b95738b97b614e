import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config/config.ts'

/**
 * Resolves after the minimum duration of a refused login or signup, plus jitter. Started before the attempt, it
 * makes all refusals take the same time whatever their cause.
 */
export function failureFloor({ login_fail_floor_ms, login_fail_jitter_ms }: Config): Promise<void> {
  const wait = Math.max(0, login_fail_floor_ms) + Math.random() * login_fail_jitter_ms
  return wait === 0 ? Promise.resolve() : delay(wait, undefined, { ref: false })
}

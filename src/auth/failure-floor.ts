import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config/config.ts'

/**
 * Resolves after the min duration of a refused login or signup, plus jitter. Started before the attempt, it
 * makes all refusals take the same time whatever their cause. `imported` is a higher min while hashes of other
 * systems are stored, which take longer to verify; it never switches on a floor that is off.
 */
export function failureFloor(
  { login_fail_floor_ms, login_fail_jitter_ms }: Config,
  imported: number | null = null,
): Promise<void> {
  const floor = login_fail_floor_ms > 0 ? Math.max(login_fail_floor_ms, imported ?? 0) : 0
  const wait = floor + Math.random() * login_fail_jitter_ms
  return wait === 0 ? Promise.resolve() : delay(wait, undefined, { ref: false })
}

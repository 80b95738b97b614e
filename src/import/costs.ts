import { bcryptLibrary } from '../auth/foreign-hashes.ts'
import type { Passwords } from '../auth/password.ts'
import { StartError } from '../errors.ts'

/** A hash that takes longer to verify here is refused: each login would wait for it. */
const bearableMs = 2000
/** A server under load verifies slower than the import measured. */
const slack = 1.5

export type Costs = {
  /** False if one verification takes too long here. */
  isBearable(stored: string): Promise<boolean>
  /** How long a failed login must take, so that its time does not reveal the hashes seen so far. */
  floor(): number
}

/** Measures each format and cost once. */
export function createCosts(passwords: Passwords): Costs {
  const measured = new Map<string, number>()
  const verify = (stored?: string) => passwords.verify(stored, 'a measured password')
  const measure = async (stored: string): Promise<number> => {
    // The first job starts a thread.
    if (measured.size === 0) await verify()
    const [started, usedBefore] = [performance.now(), process.cpuUsage()]
    await verify(stored)
    // The lesser of the two: on a busy machine wall time is too long, and a hash of several threads uses more processor
    // time than it takes.
    const { user, system } = process.cpuUsage(usedBefore)
    return Math.min(performance.now() - started, (user + system) / 1000)
  }
  return {
    isBearable: async (stored) => {
      const cost = costOf(stored)
      const ms = measured.get(cost) ?? (await measure(stored))
      measured.set(cost, ms)
      return ms <= bearableMs
    },
    floor: () => Math.ceil(slack * Math.max(0, ...[...measured.values()].filter((ms) => ms <= bearableMs))),
  }
}

/** The text without salt and key, which bcrypt writes as one. */
function costOf(stored: string): string {
  const isBcrypt = /\$2[aby]\$/.test(stored)
  if (isBcrypt) requireBcrypt()
  return stored
    .split('$')
    .slice(0, isBcrypt ? -1 : -2)
    .join('$')
}

function requireBcrypt(): void {
  try {
    bcryptLibrary()
  } catch (cause) {
    const message = 'The package @node-rs/bcrypt, which verifies bcrypt hashes, is missing. Install it.'
    throw new StartError('package_missing', message, 78, { cause })
  }
}

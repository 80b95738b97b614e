import { sha256Hex } from '../auth/secrets.ts'
import { formatIpv6, ipv6Words } from '../config/ip.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/db.ts'
import { refusal, ServiceError } from '../errors.ts'
import type { Log } from './log.ts'
import { createMemoryLimiter, type Held, type Limiter } from './rate-limit.ts'
import { createPostgresLimiter } from './rate-limit-postgres.ts'

/**
 * The limiters of contract 1, section 9. REST limiters hold a slot while an attempt runs and charge it by
 * its outcome; action limiters charge every call that reaches them.
 */
export const restLimiters = [
  'login_ip',
  'login_account',
  'bootstrap_ip',
  'signup_ip',
  'signup_username',
  'signup_open_ip',
] as const
export type RestLimiter = (typeof restLimiters)[number]

/**
 * Takes a slot for a key, or refuses with `rate_limited`. `isCharged` is asked when the attempt ends and
 * decides for this slot alone, whatever the refusals that charge the others.
 */
export type Hold = (limiter: RestLimiter, key: string, isCharged?: () => boolean) => Promise<void>

export type Limiters = {
  /**
   * Runs an attempt. The slots it took become charges when it is refused for one of `charged`, and are
   * dropped however else it ends, save those with a rule of their own.
   */
  attempt<T>(charged: readonly string[], work: (hold: Hold) => Promise<T>): Promise<T>
  /** Forgets the charges of a key, after a success. */
  clear(limiter: RestLimiter, keys: readonly string[]): Promise<void>
  /** Charges an action group for an account. */
  take(group: string, account_id: string): Promise<void>
  /** Refuses an account that has spent its budget. */
  checkBudget(name: string, account_id: string): Promise<void>
  /** Charges a budget with what was done; more than was left may be spent at once. */
  spend(name: string, account_id: string, count: number): Promise<void>
  /** Charges an action group for a client address. */
  takeIp(group: string, ip: string): Promise<void>
}

/** Keys hold only normalised values and digests, never raw text of a caller (contract 1, section 9.1 rule 5). */
export const ipKey = (ip: string): string => `ip:${limiterIp(ip)}`
export const identifierKey = (key: string): string => `name:${sha256Hex(key)}`
export const accountKey = (account_id: string): string => `account:${account_id}`

/** The key of IP limiters: IPv4 as it is, IPv6 its /64, which one household or host owns whole. */
export function limiterIp(ip: string): string {
  const words = ipv6Words(ip)
  return words ? `${formatIpv6([...words.slice(0, 4), 0, 0, 0, 0])}/64` : ip
}

type Rule = { max: number; seconds: number }

/** A group may be called like a setting that is no limit; `limit_store` is one. */
const isRule = (setting: unknown): setting is Rule | null =>
  setting === null || (typeof setting === 'object' && 'max' in setting)

const perAccount = { max: 1200, seconds: 900 }
const perIp = { max: 600, seconds: 900 }

/** Makes the limiter of a name, which is the same on every node. */
export type LimiterStore = (name: string, rule: { max: number; windowMs: number }) => Limiter

const memoryStore: LimiterStore = (_name, rule) => createMemoryLimiter(rule)

/** Where limiters count (setting `limit_store`): in this process, or in the database for all nodes. */
export const limiterStore = ({ limit_store }: Config, db: Database, log: Log): LimiterStore =>
  limit_store === 'memory' ? memoryStore : (name, rule) => createPostgresLimiter({ db, log, name, ...rule })

export function createLimiters(config: Config, store: LimiterStore = memoryStore): Limiters {
  const made = new Map<string, Limiter | null>()
  /** `space` keeps a consumer's group apart from a REST limiter of that name, and its axes from each other. */
  const limiter = (space: 'rest' | 'account' | 'ip', name: string, standard: Rule): Limiter | null => {
    const key = `${space} ${name}`
    const known = made.get(key)
    if (known !== undefined) return known
    const setting = (config as Record<string, unknown>)[`limit_${name}`]
    const isSet = isRule(setting) && (space === 'rest') === restLimiters.includes(name as RestLimiter)
    const rule = isSet ? setting : standard
    const one = rule && store(key, { max: rule.max, windowMs: rule.seconds * 1000 })
    made.set(key, one)
    return one
  }
  const charge = async (found: Limiter | null, key: string): Promise<void> => {
    const charged = await found?.charge(key)
    if (charged && !charged.ok) throw refusal('rate_limited', { retry_after: charged.retryAfter })
  }

  return {
    attempt: async (charged, work) => {
      const held: { slot: Held; isCharged: (() => boolean) | undefined }[] = []
      const hold: Hold = async (name, key, isCharged) => {
        const slot = await limiter('rest', name, perIp)?.hold(key)
        if (slot && !slot.ok) throw refusal('rate_limited', { retry_after: slot.retryAfter })
        if (slot) held.push({ slot, isCharged })
      }
      const settle = async (isRefused: boolean): Promise<void> => {
        await Promise.all(
          held.map(({ slot, isCharged }) => ((isCharged?.() ?? isRefused) ? slot.charge() : slot.drop())),
        )
      }
      try {
        const result = await work(hold)
        await settle(false)
        return result
      } catch (error) {
        await settle(error instanceof ServiceError && charged.includes(error.data.reason))
        throw error
      }
    },
    clear: async (name, keys) => {
      for (const key of keys) await limiter('rest', name, perIp)?.clear(key)
    },
    take: (group, account_id) => charge(limiter('account', group, perAccount), accountKey(account_id)),
    checkBudget: async (name, account_id) => {
      const slot = await limiter('account', name, perAccount)?.hold(accountKey(account_id))
      if (slot && !slot.ok) throw refusal('rate_limited', { retry_after: slot.retryAfter })
      await slot?.drop()
    },
    spend: async (name, account_id, count) => {
      await limiter('account', name, perAccount)?.spend(accountKey(account_id), count)
    },
    takeIp: (group, ip) => charge(limiter('ip', group, perIp), ipKey(ip)),
  }
}

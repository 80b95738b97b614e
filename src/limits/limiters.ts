import { sha256Hex } from '../auth/secrets.ts'
import type { Config } from '../config/config.ts'
import { formatIpv6, hostBehind, ipv6Words } from '../config/ip.ts'
import type { Database } from '../db/db.ts'
import { refusal, ServiceError } from '../errors.ts'
import type { Log } from '../log/log.ts'
import { noObserver, type Observer, since } from '../observe/observer.ts'
import type { Held, Limiter, Refused } from './limiter.ts'
import { withLines } from './line.ts'
import { createMemoryLimiter } from './memory-limiter.ts'
import { createPostgresLimiter } from './postgres-limiter.ts'

/**
 * REST limiters hold a slot while an attempt runs and charge it by its outcome; RPC limiters charge every
 * call that reaches them.
 */
const restLimiters = [
  'login_ip',
  'login_account',
  'second_factor',
  'bootstrap_ip',
  'signup_ip',
  'signup_username',
  'signup_open_ip',
  'recover_ip',
  'recover_identifier',
  'ticket_ip',
  'flow_ip',
] as const
export type RestLimiter = (typeof restLimiters)[number]

type IsCharged = () => boolean

/**
 * Takes slots, or refuses with `rate_limited`; if only slots of running attempts are in the way, it waits for
 * them. `isCharged` is called when the attempt ends and decides for these slots alone, whatever charges the others.
 */
export type Hold = {
  /** One slot of a key. */
  key(limiter: RestLimiter, key: string, isCharged?: IsCharged): Promise<void>
  /** One slot of a client address, and one of the network around it. */
  ip(limiter: RestLimiter, ip: string, isCharged?: IsCharged): Promise<void>
}

export type Limiters = {
  /**
   * Runs an attempt. Its slots become charges if it is refused with one of the reasons `charged`, and are freed
   * otherwise; slots with their own `isCharged` follow that.
   */
  attempt<T>(charged: readonly string[], work: (hold: Hold) => Promise<T>): Promise<T>
  /** Forgets the charges of a key, after a success. */
  clear(limiter: RestLimiter, keys: readonly string[]): Promise<void>
  /** The charges of a key and the slots of its running attempts; 0 if the limiter is off. */
  count(limiter: RestLimiter, key: string): Promise<number>
  /** Charges a group of RPC methods for an account. */
  take(group: string, account_id: string): Promise<void>
  /** Refuses an account that has spent its budget. */
  checkBudget(name: string, account_id: string): Promise<void>
  /** Charges a budget for work already done, even beyond what was left. */
  spend(name: string, account_id: string, count: number): Promise<void>
  /** Charges a group of RPC methods for a client address. */
  takeIp(group: string, ip: string): Promise<void>
  /** Charges a group for both, or for neither if one of them refuses. */
  takeBoth(group: string, ip: string, account_id: string): Promise<void>
}

/** Keys hold only normalised values and digests, never raw input. */
export const identifierKey = (key: string): string => `name:${sha256Hex(key)}`
export const accountKey = (account_id: string): string => `account:${account_id}`
/** The key of an address's own bucket within another bucket. */
export const keyAt = (key: string, ip: string): string => `${key} ${ipKey(ip)}`
const ipKey = (ip: string): string => `ip:${limiterIp(ip)}`

/**
 * The address as IP limiters count it: IPv4 as it is, IPv6 as its /64, which belongs to one household or host.
 * IPv4 hosts behind a translator (NAT64) would share its /64, so each of them counts by itself.
 */
export function limiterIp(ip: string): string {
  const words = ipv6Words(ip)
  return words ? (hostBehind(words) ?? networkOf(words, 4)) : ip
}

/** The /48 of an IPv6 address, the largest network that providers assign to one site; undefined for IPv4. */
function widerNetwork(ip: string): string | undefined {
  const words = ipv6Words(ip)
  return words && hostBehind(words) === undefined ? networkOf(words, 3) : undefined
}

/** The source that an address belongs to in a fair queue: all addresses of one network share a turn. */
export const crowdOf = (ip: string): string => widerNetwork(ip) ?? limiterIp(ip)

const networkOf = (words: readonly number[], kept: number): string =>
  `${formatIpv6(words.map((word, at) => (at < kept ? word : 0)))}/${kept * 16}`

type Rule = { max: number; seconds: number }

/** A group may have the name of a setting that is not a limit, such as `limit_store`. */
const isRule = (setting: unknown): setting is Rule | null =>
  setting === null || (typeof setting === 'object' && 'max' in setting)

const defaultPerAccount = { max: 1200, seconds: 900 }
const defaultPerIp = { max: 600, seconds: 900 }
/** The budget of a /48 in budgets of one address: a site may have many households, an attacker 65 536 /64s. */
const widerFactor = 10

/** Makes the limiter of a name; all nodes use the same names. */
type LimiterStore = (name: string, rule: { max: number; windowMs: number }) => Limiter

const memoryStore: LimiterStore = (_name, rule) => createMemoryLimiter(rule)

/** Where limiters count (setting `limit_store`): in this process, or in the database for all nodes. */
export const limiterStore = ({ limit_store }: Config, db: Database, log: Log): LimiterStore =>
  limit_store === 'memory' ? memoryStore : (name, rule) => createPostgresLimiter({ db, log, name, ...rule })

/** `rest` is for attempts, `account` and `ip` for calls of a method group; a /48 counts the network of an address. */
type Space = 'rest' | 'account' | 'ip' | 'rest /48' | 'ip /48'

/** A limiter that is watched; `charge` and `hold` throw `rate_limited`. */
type Watched = {
  charge(key: string): Promise<void>
  hold(key: string): Promise<Held>
} & Pick<Limiter, 'spend' | 'clear' | 'count'>

/** The limiter of a name, made on first use; null if it is switched off. */
type LimiterOf = (space: Space, name: string) => Watched | null

export function createLimiters(
  config: Config,
  store: LimiterStore = memoryStore,
  observer: Observer = noObserver,
): Limiters {
  const limiterOf = limitersOf(config, store, observer)
  return {
    attempt: (charged, work) => runAttempt(limiterOf, charged, work),
    clear: async (name, keys) => await limiterOf('rest', name)?.clear(...keys),
    count: async (name, key) => (await limiterOf('rest', name)?.count(key)) ?? 0,
    take: async (group, account_id) => await limiterOf('account', group)?.charge(accountKey(account_id)),
    checkBudget: async (name, account_id) => {
      const slot = await limiterOf('account', name)?.hold(accountKey(account_id))
      await slot?.drop()
    },
    spend: async (name, account_id, count) =>
      await limiterOf('account', name)?.spend(accountKey(account_id), count),
    takeIp: async (group, ip) => {
      await limiterOf('ip', group)?.charge(ipKey(ip))
      // If the network refuses, the address keeps its charge: both belong to the same client.
      const network = widerNetwork(ip)
      if (network) await limiterOf('ip /48', group)?.charge(`ip:${network}`)
    },
    async takeBoth(group, ip, account_id) {
      const slots: Held[] = []
      const hold = async (space: Space, key: string): Promise<void> => {
        const slot = await limiterOf(space, group)?.hold(key)
        if (slot) slots.push(slot)
      }
      try {
        await hold('ip', ipKey(ip))
        const network = widerNetwork(ip)
        if (network) await hold('ip /48', `ip:${network}`)
        await limiterOf('account', group)?.charge(accountKey(account_id))
      } catch (error) {
        // Other accounts at this address must not pay for one that keeps calling.
        await Promise.all(slots.map((slot) => slot.drop()))
        throw error
      }
      await Promise.all(slots.map((slot) => slot.charge()))
    },
  }
}

function limitersOf(config: Config, store: LimiterStore, observer: Observer): LimiterOf {
  const made = new Map<string, Watched | null>()
  const make = (space: Space, name: string): Watched | null => {
    const setting = (config as Record<string, unknown>)[`limit_${name}`]
    const isRest = space.startsWith('rest')
    const isSet = isRule(setting) && isRest === restLimiters.includes(name as RestLimiter)
    const rule = isSet ? setting : space === 'account' ? defaultPerAccount : defaultPerIp
    if (rule === null) return null
    const max = space.endsWith('/48') ? rule.max * widerFactor : rule.max
    const limiter = store(`${space} ${name}`, { max, windowMs: rule.seconds * 1000 })
    return watched(isRest ? withLines(limiter) : limiter, name, config.limit_store, observer)
  }
  return (space, name) => {
    const key = `${space} ${name}`
    const known = made.get(key)
    if (known !== undefined) return known
    const limiter = make(space, name)
    made.set(key, limiter)
    return limiter
  }
}

function watched(limiter: Limiter, name: string, store: string, observer: Observer): Watched {
  const admitted = async <T extends { ok: true }>(asked: () => Promise<T | Refused>): Promise<T> => {
    const { tracer } = observer
    const began = performance.now()
    const answer = await (tracer?.span('limiter', { 'cellkeep.limiter': name }, asked) ?? asked())
    observer.observe('limiter_seconds', since(began), store)
    if (answer.ok) return answer
    observer.count('rate_limited_total', name)
    throw refusal('rate_limited', { retry_after: answer.retryAfter })
  }
  return {
    charge: async (key) => void (await admitted(() => limiter.charge(key))),
    hold: (key) => admitted(() => limiter.hold(key)),
    spend: limiter.spend,
    clear: limiter.clear,
    count: limiter.count,
  }
}

async function runAttempt<T>(
  limiterOf: LimiterOf,
  charged: readonly string[],
  work: (hold: Hold) => Promise<T>,
): Promise<T> {
  const held: { slot: Held; isCharged: IsCharged | undefined }[] = []
  const take = async (limiter: Watched | null, key: string, isCharged?: IsCharged): Promise<void> => {
    const slot = await limiter?.hold(key)
    if (slot) held.push({ slot, isCharged })
  }
  const hold: Hold = {
    key: (name, key, isCharged) => take(limiterOf('rest', name), key, isCharged),
    async ip(name, ip, isCharged) {
      await take(limiterOf('rest', name), ipKey(ip), isCharged)
      const network = widerNetwork(ip)
      if (network) await take(limiterOf('rest /48', name), `ip:${network}`, isCharged)
    },
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
}

import { setTimeout as delay } from 'node:timers/promises'
import { type Client, createClient } from '../../src/client/client.ts'
import { retry } from '../../src/client/retry.ts'
import { firstAccount } from '../helpers/server-process.ts'
import { on } from '../helpers/twins.ts'
import type { Engine } from './engine.ts'
import type { Fleet } from './fleet.ts'
import type { Options } from './options.ts'

export type Episode = { faults: string[]; struck: number; healed: number }
export type Violation = { invariant: string; what: string }
export type World = Awaited<ReturnType<typeof createWorld>>
type As = {
  token?: string
  expects?: number[]
  jar?: boolean
  keyed?: boolean
  node?: Fleet['nodes'][number]
}

export const lena = { username: 'lena', password: 'another horse battery' } as const
const carol = { username: 'carol', password: 'yet another battery' } as const
/** SQL for a table of all audit rows, including those that retention has removed. */
export const allRows = `(
  select id, seq, event_type, outcome, metadata from audit_entries()
  union select id, seq, event_type, outcome, metadata from chaos.removed)`

/** Idempotency keys for each writer, fewer than an account may use in a day. */
const keysPerWriter = 8_000
const bob = { username: 'bob', password: 'a third horse battery' } as const

/**
 * What loads, faults and invariants share: the engine, the nodes, the accounts, the times of faults, and the
 * violations.
 */
export async function createWorld(engine: Engine, fleet: Fleet, options: Options) {
  const violations: Violation[] = []
  const episodes: Episode[] = []
  const loops: Promise<void>[] = []
  let isOver = false

  const client = ({ token, expects = [], jar, keyed, node }: As = {}): Client =>
    createClient({
      url: fleet.base,
      token,
      jar: jar ?? false,
      timeout: 90_000 * options.slack,
      fetch: fleet.fetch({ expects, ...(node && { node }) }),
      use: keyed ? [retry({ deadline_ms: 60_000 * options.slack })] : [],
    })
  const signedIn = async (who: { username: string; password: string }, keyed: boolean): Promise<Client> => {
    const one = client({ jar: true, keyed })
    await one.account.login(who)
    return one
  }
  const tokenOf = async (one: Client): Promise<string> => {
    const made = await one.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
    return made.token
  }

  const ada = await signedIn(firstAccount, true)
  await ada.app_settings_update({ open_signup: true })
  await client({ jar: true }).account.signup(lena)
  const { account, actor } = await client({ jar: true }).account.signup(bob)
  const { account: third } = await client({ jar: true }).account.signup(carol)
  const { offer } = await ada.role_grant_offer_create({ to_account_id: third.id, role: 'admin' })
  const carolsOwn = await signedIn(carol, true)
  const keyedPerSecond = options.rate / 5
  const writers: Client[] = []
  while (writers.length * keysPerWriter < keyedPerSecond * 60 * options.minutes) {
    const writer = { username: `writer-${writers.length}`, password: 'a writer of horse batteries' }
    await client({ jar: true }).account.signup(writer)
    writers.push(await signedIn(writer, true))
  }
  await carolsOwn.role_grant_offer_accept({ offer_id: offer.offer_id })
  // The partitions are so small that numbering makes many during the run, but not hundreds.
  const partitionRows = Math.round(100 * Math.max(3, options.minutes))
  await on(
    engine.primary.url,
    'set search_path = cellkeep',
    'create schema chaos create table removed (like cellkeep.audit_log including indexes)',
    `update audit_position
     set partition_rows = ${partitionRows}, seq = (select max(upper) from audit_partitions()) - 100`,
  )

  return {
    engine,
    fleet,
    options,
    violations,
    episodes,
    client,
    /** The client of an admin whose tokens are created and revoked. */
    carol: carolsOwn,
    adaToken: await tokenOf(ada),
    /** Clients that send idempotency keys; enough accounts for the keys of the whole run. */
    writers,
    bob: {
      ...{ account_id: account.id, actor_id: actor.id },
      token: await tokenOf(await signedIn(bob, false)),
    },
    violate: (invariant: string, what: string): void => {
      violations.push({ invariant, what })
      console.log(`  VIOLATED ${invariant}: ${what}`)
    },
    /** Whether there was no fault between these times, nor shortly before them. */
    isCalm: (from: number, to = from): boolean =>
      !episodes.some(({ struck, healed }) => struck <= to && from <= healed + 3_000 * options.slack),
    /** Repeats the work `perSecond` times a second at a rate of 30, and proportionally at others. */
    loop: (perSecond: number, work: () => Promise<unknown>): void => {
      const everyMs = 1_000 / (perSecond * (options.rate / 30))
      const run = async (): Promise<void> => {
        while (!isOver) {
          const began = performance.now()
          await work()
          await delay(Math.max(0, everyMs * (0.5 + Math.random()) - (performance.now() - began)))
        }
      }
      loops.push(run())
    },
    get isOver() {
      return isOver
    },
    endLoad: async (): Promise<void> => {
      isOver = true
      await Promise.all(loops)
    },
  }
}

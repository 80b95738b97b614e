import { afterEach, describe, expect, it, vi } from 'vitest'
import { freshIp, type SendOptions, send } from '../../test/helpers/account-routes.ts'
import { sql } from '../db/db.ts'
import { createInvite } from '../invites/invite_create.ts'
import { setSettings } from '../settings/app_settings_update.ts'
import { scenario, type TestOptions, type TestService, testService } from '../testing/index.ts'

const services: TestService[] = []
afterEach(() => Promise.all(services.splice(0).map((test) => test.close())))

/** Behind a proxy, so that each attempt can come from an address of its own. */
async function service(options: TestOptions = {}): Promise<TestService> {
  const test = await testService({ trusted_proxies: ['127.0.0.1'], ...options })
  services.push(test)
  return test
}
const operator = { via: 'testing' }
const open = ({ service: { app } }: TestService, open_signup: boolean) =>
  setSettings(app, { open_signup }, operator)
const invite = ({ service: { app } }: TestService, username: string) =>
  createInvite(app, { username }, operator)
const signUp = (test: TestService, username: string, options: SendOptions = {}) =>
  send(test, 'POST /signup', { body: { username, password: 'a long password' }, ...options })
const statusOf = async (...attempt: Parameters<typeof signUp>) => (await signUp(...attempt)).status
/** The statuses of attempts made one after another. */
async function statuses(count: number, attempt: (n: number) => Promise<number>): Promise<number[]> {
  const seen: number[] = []
  for (let n = 0; n < count; n++) seen.push(await attempt(n))
  return seen
}
const exists = async ({ service: { app } }: TestService, username: string) =>
  (await app.db.first(sql`select from account where username = ${username}`)) !== undefined

describe('signup_ip', () => {
  it('admits five refusals per address, 403 and 409 alike; then 429 also with an invite, unrecorded', async () => {
    const test = await service()
    await test.account({ username: 'taken' })
    const ip = freshIp()
    await open(test, true)
    expect(await statuses(3, () => statusOf(test, 'taken', { ip }))).toEqual([409, 409, 409])
    await open(test, false)
    expect(await statuses(2, (n) => statusOf(test, `nobody${n}`, { ip }))).toEqual([403, 403])
    await invite(test, 'invited')
    await scenario(test, async () => {
      const reply = await signUp(test, 'invited', { ip })
      const { retry_after } = reply.json as { retry_after: number }
      expect([reply.status, reply.json]).toEqual([429, { error: 'rate_limit_exceeded', retry_after }])
      expect(reply.headers['retry-after']).toBe(String(retry_after))
      expect(retry_after).toBeGreaterThan(890)
      expect(reply.cookie).toBeUndefined()
    })
    expect(await statusOf(test, 'invited', { ip: freshIp() })).toBe(200)
  })

  it('charges no success and no malformed body, and is not cleared by a success', async () => {
    const test = await service()
    const ip = freshIp()
    await open(test, true)
    expect(await statuses(6, () => statusOf(test, 'x', { ip }))).toEqual(Array(6).fill(400))
    expect(await statuses(6, (n) => statusOf(test, `fresh${n}`, { ip }))).toEqual(Array(6).fill(200))
    expect(await statuses(4, () => statusOf(test, 'fresh0', { ip }))).toEqual([409, 409, 409, 409])
    expect(await statusOf(test, 'fresh6', { ip })).toBe(200)
    expect(await statuses(2, () => statusOf(test, 'fresh0', { ip }))).toEqual([409, 429])
  })

  it('lets exactly five of twenty parallel refusals through', async () => {
    const test = await service()
    const ip = freshIp()
    const seen = await Promise.all(Array.from({ length: 20 }, (_, n) => statusOf(test, `many${n}`, { ip })))
    expect(seen.filter((status) => status === 403)).toHaveLength(5)
    expect(seen.filter((status) => status === 429)).toHaveLength(15)
  })
})

describe('signup_username', () => {
  it('admits ten refusals of one username, in any case and from any address', async () => {
    const test = await service()
    const names = ['someone', 'SOMEONE', 'SomeOne']
    const attempt = (n: number) => statusOf(test, names[n % 3] as string, { ip: freshIp() })
    expect(await statuses(11, attempt)).toEqual([...Array(10).fill(403), 429])
    expect(await statusOf(test, 'someone_else', { ip: freshIp() })).toBe(403)
  })

  it('is cleared by a success', async () => {
    const test = await service({ limit_signup_username: '3/900' })
    const attempt = () => statusOf(test, 'late', { ip: freshIp() })
    expect(await statuses(2, attempt)).toEqual([403, 403])
    await invite(test, 'late')
    expect(await statuses(5, attempt)).toEqual([200, 403, 403, 403, 429])
  })
})

describe('signup_open_ip', () => {
  const limits = { limit_signup_ip: 'off', limit_signup_username: 'off' } as const

  it('admits ten open signups of an address in an hour: the eleventh is 429, and no account', async () => {
    const test = await service(limits)
    await open(test, true)
    const ip = freshIp()
    expect(await statuses(10, (n) => statusOf(test, `open${n}`, { ip }))).toEqual(Array(10).fill(200))
    const refused = await signUp(test, 'open10', { ip })
    expect(refused.status).toBe(429)
    expect((refused.json as { retry_after: number }).retry_after).toBeGreaterThan(3590)
    expect(await exists(test, 'open10')).toBe(false)
    expect(await statusOf(test, 'open10', { ip: freshIp() })).toBe(200)
  })

  it('is charged by no refusal', async () => {
    const test = await service({ ...limits, limit_signup_open_ip: '2/900' })
    await test.account({ username: 'taken' })
    await open(test, true)
    const ip = freshIp()
    expect(await statuses(4, () => statusOf(test, 'taken', { ip }))).toEqual([409, 409, 409, 409])
    expect(await statuses(3, (n) => statusOf(test, `open${n}`, { ip }))).toEqual([200, 200, 429])
  })

  it('holds back no invited signup once signup is closed, and is not charged by it', async () => {
    const test = await service({ ...limits, limit_signup_open_ip: '2/900' })
    const ip = freshIp()
    for (const name of ['in0', 'in1', 'in2']) await invite(test, name)
    expect(await statuses(2, (n) => statusOf(test, `in${n}`, { ip }))).toEqual([200, 200])
    await open(test, true)
    expect(await statuses(3, (n) => statusOf(test, `open${n}`, { ip }))).toEqual([200, 200, 429])
    await open(test, false)
    expect(await statusOf(test, 'in2', { ip })).toBe(200)
  })

  it('lets exactly two of eight parallel ones through where two are allowed', async () => {
    const test = await service({ ...limits, limit_signup_open_ip: '2/900' })
    await open(test, true)
    const ip = freshIp()
    const seen = await Promise.all(Array.from({ length: 8 }, (_, n) => statusOf(test, `many${n}`, { ip })))
    expect(seen.sort()).toEqual([200, 200, ...Array(6).fill(429)])
  })

  it('is not charged where signup closes during the attempt and an invite lets in', async () => {
    const test = await service({ ...limits, limit_signup_open_ip: '1/900' })
    await open(test, true)
    await invite(test, 'in_time')
    const ip = freshIp()
    const { passwords } = test.service.app
    const { hash } = passwords
    vi.spyOn(passwords, 'hash').mockImplementationOnce(async (typed) => {
      await open(test, false)
      return await hash(typed)
    })
    expect(await statusOf(test, 'in_time', { ip })).toBe(200)
    await open(test, true)
    expect(await statuses(2, (n) => statusOf(test, `after${n}`, { ip }))).toEqual([200, 429])
  })
})

describe('a full hash queue', () => {
  /** Runs the work while the only place in the queue is taken. */
  async function whileBusy<T>({ service: { app } }: TestService, work: () => Promise<T>): Promise<T> {
    let isOver = false
    const taken = (async () => {
      // The place is taken again in the same turn that frees it, before any request can go on.
      while (!isOver) await app.passwords.hash('whatever')
    })()
    return await work().finally(async () => {
      isOver = true
      await taken
    })
  }

  it('is 503 with Retry-After: nothing charged, nothing recorded, the invite claimable', async () => {
    const test = await service({ limit_signup_ip: '2/900', hash_concurrency: 1, hash_queue_max: 0 })
    await invite(test, 'invited')
    const ip = freshIp()
    await scenario(test, () =>
      whileBusy(test, async () => {
        for (const name of ['invited', 'nobody', 'nobody']) {
          const { status, json, headers } = await signUp(test, name, { ip })
          expect([status, json]).toEqual([503, { error: 'busy', retry_after: 1 }])
          expect(headers['retry-after']).toBe('1')
        }
      }),
    )
    expect(await statusOf(test, 'invited', { ip })).toBe(200)
    expect(await statuses(3, () => statusOf(test, 'nobody', { ip }))).toEqual([403, 403, 429])
  })
})

describe('the failure floor', () => {
  const floor = 300

  it('is the least time of a 403 and of a 409', async () => {
    const test = await service({ login_fail_floor_ms: floor, login_fail_jitter_ms: 20 })
    await test.account({ username: 'taken' })
    const timed = async (username: string) => {
      const started = performance.now()
      const { status } = await signUp(test, username, { ip: freshIp() })
      return [status, performance.now() - started >= floor]
    }
    expect(await Promise.all(['taken', 'nobody'].map(timed))).toEqual([
      [403, true],
      [403, true],
    ])
    await open(test, true)
    expect(await timed('taken')).toEqual([409, true])
  })

  it('begins after the same statements with an invite link and without', async () => {
    let statements: string[] = []
    const test = await service({ onStatement: (text) => void statements.push(text) })
    const reads = async (more: object) => {
      statements = []
      const body = { username: 'nobody', password: 'a long password', ...more }
      expect(await statusOf(test, 'nobody', { body, ip: freshIp() })).toBe(403)
      return statements.filter((text) => text.includes('from app_settings')).length
    }
    expect(await reads({ invite_token: 'secret_svc_ticket_none' })).toBe(await reads({}))
  })

  it('delays no success, no 400, no 429 and no charge', async () => {
    const test = await service({ login_fail_floor_ms: 10_000, limit_signup_ip: '1/900' })
    await invite(test, 'invited')
    const ip = freshIp()
    const started = performance.now()
    expect(await statusOf(test, 'invited', { ip })).toBe(200)
    const { audit } = test.service.app
    const failed = new Promise<void>((resolve) => {
      const { failure } = audit
      vi.spyOn(audit, 'failure').mockImplementationOnce((row) => failure(row).finally(resolve))
    })
    // This call ends with the service.
    signUp(test, 'nobody', { ip }).catch(() => undefined)
    await failed
    expect(await statusOf(test, 'x', { ip })).toBe(400)
    // More than a second: no slot is held any longer, but its charge still counts.
    const retryAfter = async () => {
      const { json } = await signUp(test, 'invited', { ip })
      return (json as { retry_after: number }).retry_after
    }
    await expect.poll(retryAfter).toBeGreaterThan(1)
    expect(performance.now() - started).toBeLessThan(10_000)
  })
})

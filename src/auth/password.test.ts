import * as argon from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { type RunHash, runHash } from './hash-threads.ts'
import { createPasswords, type PasswordsOptions } from './password.ts'

const cheap = { memory: 64, time: 1, parallelism: 1 }
const make = (options: Partial<PasswordsOptions> = {}) =>
  createPasswords({ concurrency: 2, queueMax: 100, argon2: cheap, ...options })

/** Counts the verifications that run, since their number is the rule under test. */
function counted(options: Partial<PasswordsOptions> = {}) {
  const jobs: unknown[][] = []
  const run: RunHash = (name, ...args) => {
    jobs.push([name, ...args])
    return runHash(name, ...args)
  }
  return { passwords: make({ run, ...options }), jobs }
}

const busy = { status: 503, data: { reason: 'busy', retry_after: 1 } }

describe('hashes', () => {
  test('are Argon2id PHC strings with a 16-byte salt and 32-byte output, of the configured cost', async () => {
    const passwords = make({ argon2: { memory: 128, time: 2, parallelism: 1 } })
    const [first, second] = await Promise.all([passwords.hash('same'), passwords.hash('same')])
    expect(first).toMatch(/^\$argon2id\$v=19\$m=128,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(first).not.toBe(second)
  })

  test('verify the password they were made from, in every byte, and nothing else', async () => {
    const passwords = make()
    const password = '  Pässwörd 😀 with spaces  '
    const stored = await passwords.hash(password)
    expect(await passwords.verify(stored, password)).toBe(true)
    for (const other of [
      '',
      password.trim(),
      password.toLowerCase(),
      password.normalize('NFD'),
      `${password} `,
    ])
      expect(await passwords.verify(stored, other)).toBe(false)
  })

  test('made with other parameters still verify, since those come from the stored string', async () => {
    const passwords = make({ argon2: { memory: 128, time: 2, parallelism: 1 } })
    const stored = await make().hash('x')
    expect(await passwords.verify(stored, 'x')).toBe(true)
    expect(await passwords.verify(stored, 'y')).toBe(false)
  })

  test('are outdated when any parameter differs', async () => {
    const passwords = make()
    expect(passwords.isOutdated(await passwords.hash('x'))).toBe(false)
    for (const argon2 of [
      { memory: 128, time: 1, parallelism: 1 },
      { memory: 64, time: 2, parallelism: 1 },
      { memory: 64, time: 1, parallelism: 2 },
    ])
      expect(passwords.isOutdated(await make({ argon2 }).hash('x'))).toBe(true)
    const same = { memoryCost: 64, timeCost: 1, parallelism: 1 }
    for (const other of [{ outputLen: 16 }, { salt: Buffer.alloc(8, 1) }, { algorithm: 1 }, { version: 0 }])
      expect(passwords.isOutdated(await argon.hash('x', { ...same, ...other }))).toBe(true)
    expect(passwords.isOutdated('garbage')).toBe(true)
  })
})

describe('every attempt costs exactly one verification of the same parameters', () => {
  test('an unknown account is verified against a hash that no password matches', async () => {
    const { passwords, jobs } = counted()
    expect(await passwords.verify(undefined, 'x')).toBe(false)
    expect(jobs).toEqual([['verify', expect.any(String), 'x']])
    const dummy = String(jobs[0]?.[1])
    expect(passwords.isOutdated(dummy)).toBe(false)
    expect(dummy).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(await argon.verify(dummy, 'x')).toBe(false)
  })

  const salt = 'c29tZXNhbHRzb21lc2FsdA'
  const output = 'A'.repeat(43)
  test.each([
    '',
    'garbage',
    '\0',
    '$argon2id$v=19$m=64,t=1,p=1$',
    `$argon2id$v=19$m=64,t=1,p=1$${salt}$AAAA`,
    `$argon2id$v=19$m=1,t=1,p=1$${salt}$${output}`,
    `$argon2id$v=19$m=0,t=0,p=0$${salt}$${output}`,
    `$argon2id$v=19$m=4294967295,t=1,p=1$${salt}$${output}`,
    `$argon2id$v=19$m=64,t=4294967295,p=1$${salt}$${output}`,
    `$argon2id$v=19$m=99999999999999,t=1,p=1$${salt}$${output}`,
    `$argon2x$v=19$m=64,t=1,p=1$${salt}$${output}`,
    `$argon2id$v=18$m=64,t=1,p=1$${salt}$${output}`,
    `$scrypt$ln=24,r=8,p=1$${salt}$${output}`,
    '$2b$10$abcdefghijklmnopqrstuv',
  ])('a corrupt stored hash is false: %j', async (stored) => {
    const { passwords, jobs } = counted()
    expect(await passwords.verify(undefined, 'x')).toBe(false)
    expect(await passwords.verify(stored, 'x')).toBe(false)
    expect(jobs).toHaveLength(2)
    expect(jobs[1]).toEqual(jobs[0])
  })

  test('a hash cut, extended or with any character changed never throws', async () => {
    const { passwords, jobs } = counted()
    const stored = await passwords.hash('x')
    const variants = Array.from({ length: stored.length }, (_, i) => [
      stored.slice(0, i),
      `${stored.slice(0, i)}!${stored.slice(i + 1)}`,
      `${stored.slice(0, i)}9${stored.slice(i + 1)}`,
      `${stored.slice(0, i)}0${stored.slice(i)}`,
    ]).flat()
    for (const variant of variants) {
      jobs.length = 0
      const matches = await passwords.verify(variant, 'x')
      expect(jobs).toHaveLength(1)
      if (variant !== stored) expect(matches, variant).toBe(false)
    }
  })
})

describe('the queue', () => {
  test('refuses jobs when it is full, and accepts jobs again when there is room', async () => {
    const passwords = make({ concurrency: 2, queueMax: 3 })
    const stored = await passwords.hash('x')
    const jobs = Array.from({ length: 5 }, (_, i) => {
      expect(passwords.hasRoom()).toBe(true)
      expect(passwords.depth).toBe(Math.max(0, i - 2))
      return i % 2 === 0 ? passwords.hash('x') : passwords.verify(stored, 'x')
    })
    expect(passwords.hasRoom()).toBe(false)
    expect(passwords.depth).toBe(3)
    const refused = [passwords.hash('x'), passwords.verify(stored, 'x'), passwords.verify(undefined, 'x')]
    for (const job of refused) await expect(job).rejects.toMatchObject(busy)
    await Promise.all(jobs)
    expect(passwords.depth).toBe(0)
    expect(passwords.hasRoom()).toBe(true)
    expect(await passwords.verify(stored, 'x')).toBe(true)
  })

  test('without waiting room accepts as many jobs as run at once', async () => {
    const passwords = make({ concurrency: 1, queueMax: 0 })
    const job = passwords.hash('x')
    expect(passwords.hasRoom()).toBe(false)
    await expect(passwords.hash('x')).rejects.toMatchObject(busy)
    await job
    expect(passwords.hasRoom()).toBe(true)
  })

  test('runs `concurrency` jobs at once and no more', async () => {
    let given = 0
    let most = 0
    const run: RunHash = (name, ...args) => {
      most = Math.max(most, ++given)
      return runHash(name, ...args).finally(() => given--)
    }
    const passwords = make({ concurrency: 3, run })
    await Promise.all(Array.from({ length: 30 }, () => passwords.hash('x')))
    expect(most).toBe(3)
  })

  test('serves first come, first served, also against a newcomer at the moment a slot gets free', async () => {
    const passwords = make({ concurrency: 1 })
    const order: string[] = []
    const late = passwords.hash('x').then(() => passwords.hash('x').then(() => order.push('newcomer')))
    const early = ['a', 'b', 'c'].map((name) => passwords.hash('x').then(() => order.push(name)))
    await Promise.all([late, ...early])
    expect(order).toEqual(['a', 'b', 'c', 'newcomer'])
  })

  test('a failing job frees its slot', async () => {
    let isFirst = true
    const run: RunHash = async (name, ...args) => {
      const fails = isFirst
      isFirst = false
      if (fails) throw new Error('no memory')
      return await runHash(name, ...args)
    }
    const passwords = make({ concurrency: 1, queueMax: 4, run })
    const jobs = Array.from({ length: 5 }, () => passwords.hash('x'))
    const [failed, ...next] = await Promise.allSettled(jobs)
    expect(failed?.status).toBe('rejected')
    expect(next.map(({ status }) => status)).toEqual(next.map(() => 'fulfilled'))
    expect(passwords.hasRoom()).toBe(true)
    await passwords.hash('x')
  })
})

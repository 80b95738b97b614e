import * as argon from '@node-rs/argon2'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createPasswords, type PasswordsOptions } from './password.ts'

// The real functions, only counted: how often a verification runs is the rule under test.
vi.mock('@node-rs/argon2', async (original) => {
  const real = await original<typeof argon>()
  return { ...real, hash: vi.fn(real.hash), verify: vi.fn(real.verify) }
})
const verifications = vi.mocked(argon.verify)
const hashes = vi.mocked(argon.hash)
beforeEach(() => {
  verifications.mockClear()
  hashes.mockClear()
})

const cheap = { memory: 64, time: 1, parallelism: 1 }
const make = (options: Partial<PasswordsOptions> = {}) =>
  createPasswords({ concurrency: 2, queueMax: 100, argon2: cheap, ...options })
const busy = { status: 503, data: { reason: 'busy', retry_after: 1 } }

describe('hashes', () => {
  test('are Argon2id PHC strings with a 16-byte salt and 32-byte output, of the configured cost', async () => {
    const passwords = await make({ argon2: { memory: 128, time: 2, parallelism: 1 } })
    const [first, second] = await Promise.all([passwords.hash('same'), passwords.hash('same')])
    expect(first).toMatch(/^\$argon2id\$v=19\$m=128,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(first).not.toBe(second)
  })

  test('verify the password they were made of, in every byte, and nothing else', async () => {
    const passwords = await make()
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
    const passwords = await make({ argon2: { memory: 128, time: 2, parallelism: 1 } })
    const stored = await (await make()).hash('x')
    expect(await passwords.verify(stored, 'x')).toBe(true)
    expect(await passwords.verify(stored, 'y')).toBe(false)
  })

  test('are outdated when any parameter differs', async () => {
    const passwords = await make()
    expect(passwords.isOutdated(await passwords.hash('x'))).toBe(false)
    for (const argon2 of [
      { memory: 128, time: 1, parallelism: 1 },
      { memory: 64, time: 2, parallelism: 1 },
      { memory: 64, time: 1, parallelism: 2 },
    ])
      expect(passwords.isOutdated(await (await make({ argon2 })).hash('x'))).toBe(true)
    const same = { memoryCost: 64, timeCost: 1, parallelism: 1 }
    for (const other of [{ outputLen: 16 }, { salt: Buffer.alloc(8, 1) }, { algorithm: 1 }, { version: 0 }])
      expect(passwords.isOutdated(await argon.hash('x', { ...same, ...other }))).toBe(true)
    expect(passwords.isOutdated('garbage')).toBe(true)
  })
})

describe('every attempt costs exactly one verification of the same parameters', () => {
  test('an unknown account is verified against a dummy that exists before the factory resolves', async () => {
    const passwords = await make()
    expect(hashes).toHaveBeenCalledTimes(1)
    const dummy = await hashes.mock.results[0]?.value
    expect(await passwords.verify(undefined, 'x')).toBe(false)
    expect(verifications.mock.calls).toEqual([[dummy, 'x']])
    expect(hashes).toHaveBeenCalledTimes(1)
    expect(passwords.isOutdated(dummy)).toBe(false)
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
    `$scrypt$ln=4,r=8,p=1$${salt}$${output}`,
    '$2b$10$abcdefghijklmnopqrstuv',
  ])('a corrupt stored hash is false: %j', async (stored) => {
    const passwords = await make()
    const dummy = await hashes.mock.results[0]?.value
    expect(await passwords.verify(stored, 'x')).toBe(false)
    expect(verifications.mock.calls).toEqual([[dummy, 'x']])
  })

  test('a hash cut, extended or with any character changed never throws', async () => {
    const passwords = await make()
    const stored = await passwords.hash('x')
    const variants = Array.from({ length: stored.length }, (_, i) => [
      stored.slice(0, i),
      `${stored.slice(0, i)}!${stored.slice(i + 1)}`,
      `${stored.slice(0, i)}9${stored.slice(i + 1)}`,
      `${stored.slice(0, i)}0${stored.slice(i)}`,
    ]).flat()
    for (const variant of variants) {
      verifications.mockClear()
      const matches = await passwords.verify(variant, 'x')
      expect(verifications).toHaveBeenCalledTimes(1)
      if (variant !== stored) expect(matches, variant).toBe(false)
    }
  })
})

describe('the queue', () => {
  test('refuses what exceeds running and waiting jobs, and takes again when there is room', async () => {
    const passwords = await make({ concurrency: 2, queueMax: 3 })
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

  test('without waiting room takes as many jobs as run at once', async () => {
    const passwords = await make({ concurrency: 1, queueMax: 0 })
    const job = passwords.hash('x')
    expect(passwords.hasRoom()).toBe(false)
    await expect(passwords.hash('x')).rejects.toMatchObject(busy)
    await job
    expect(passwords.hasRoom()).toBe(true)
  })

  test('never runs more than `concurrency` jobs', async () => {
    const passwords = await make({ concurrency: 3 })
    const { hash } = await vi.importActual<typeof argon>('@node-rs/argon2')
    let running = 0
    let most = 0
    hashes.mockImplementation(async (...given) => {
      most = Math.max(most, ++running)
      return await hash(...given).finally(() => running--)
    })
    await Promise.all(Array.from({ length: 30 }, () => passwords.hash('x')))
    hashes.mockImplementation(hash)
    expect(most).toBe(3)
  })

  test('serves first come, first served, also against a newcomer at the moment a slot gets free', async () => {
    const passwords = await make({ concurrency: 1 })
    const order: string[] = []
    const late = passwords.hash('x').then(() => passwords.hash('x').then(() => order.push('newcomer')))
    const early = ['a', 'b', 'c'].map((name) => passwords.hash('x').then(() => order.push(name)))
    await Promise.all([late, ...early])
    expect(order).toEqual(['a', 'b', 'c', 'newcomer'])
  })

  test('a failing job frees its slot', async () => {
    const passwords = await make({ concurrency: 1, queueMax: 1 })
    hashes.mockRejectedValueOnce(new Error('no memory'))
    const [failed, next] = await Promise.allSettled([passwords.hash('x'), passwords.hash('x')])
    expect(failed.status).toBe('rejected')
    expect(next.status).toBe('fulfilled')
    expect(passwords.hasRoom()).toBe(true)
    await passwords.hash('x')
  })
})

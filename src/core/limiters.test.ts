import { describe, expect, it } from 'vitest'
import { resolveOptions } from '../config.ts'
import { createLimiters, ipKey } from './limiters.ts'

const limiters = (options = {}) => createLimiters(resolveOptions(options).config)
const ip = '203.0.113.7'

/** How many of `tries` are admitted. */
async function admitted(tries: number, take: () => Promise<void>): Promise<number> {
  let count = 0
  for (let i = 0; i < tries; i++)
    await take().then(
      () => count++,
      () => {},
    )
  return count
}

describe('action limiters', () => {
  it('are 1200 per account and 600 per address, each axis of a group on its own', async () => {
    const { take, takeIp } = limiters()
    expect(await admitted(700, () => takeIp('mine', ip))).toBe(600)
    expect(await admitted(1300, () => take('mine', 'a'))).toBe(1200)
    expect(await admitted(1, () => take('mine', 'b'))).toBe(1)
    expect(await admitted(1, () => take('other', 'a'))).toBe(1)
  })

  it('follow their setting', async () => {
    const { take, takeIp } = limiters({ limit_cell_create: '2/60', limit_cell_read: null })
    expect(await admitted(3, () => take('cell_create', 'a'))).toBe(2)
    expect(await admitted(700, () => takeIp('cell_read', ip))).toBe(700)
  })

  it.each(['store', 'login_ip', 'login_account', 'bootstrap_ip'])(
    'of a group called %s have nothing to do with the setting or the limiter of that name',
    async (group) => {
      const { take, attempt } = limiters({ limit_login_ip: '1/60', limit_login_account: '1/60' })
      expect(await admitted(1300, () => take(group, 'a'))).toBe(1200)
      await attempt([], (hold) => hold('login_ip', ipKey(ip)))
      await attempt([], (hold) => hold('login_account', 'account:a'))
    },
  )
})

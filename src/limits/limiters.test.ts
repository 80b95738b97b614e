import { describe, expect, it } from 'vitest'
import { resolveOptions } from '../config/config.ts'
import { refusal } from '../errors.ts'
import { createLimiters } from './limiters.ts'

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

describe('RPC limiters', () => {
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
      await attempt([], (hold) => hold.ip('login_ip', ip))
      await attempt([], (hold) => hold.key('login_account', 'account:a'))
    },
  )
})

describe('the /48 around an IPv6 address', () => {
  const at = (subnet: number, host = 1) => `2001:db8:7:${subnet.toString(16)}::${host.toString(16)}`
  const fail = (all: ReturnType<typeof limiters>, address: string) =>
    all.attempt(['invalid_credentials'], async (hold) => {
      await hold.ip('login_ip', address)
      throw refusal('invalid_credentials')
    })
  const outcomes = async (all: ReturnType<typeof limiters>, addresses: string[]) => {
    const seen: string[] = []
    for (const address of addresses) seen.push(await fail(all, address).catch((error) => error.data.reason))
    return ['invalid_credentials', 'rate_limited'].map(
      (reason) => seen.filter((one) => one === reason).length,
    )
  }
  const many = (count: number, address: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => address(i))

  it('has ten times the budget of one address, over all its 65 536 networks', async () => {
    const all = limiters({ limit_login_ip: '3/900' })
    expect(
      await outcomes(
        all,
        many(40, (i) => at(0, i)),
      ),
    ).toEqual([3, 37])
    expect(
      await outcomes(
        all,
        many(40, (i) => at(i + 1)),
      ),
    ).toEqual([27, 13])
    expect(await outcomes(all, ['2001:db8:8::1'])).toEqual([1, 0])
  })

  it('is not charged for attempts that an address limit refuses', async () => {
    const all = limiters({ limit_login_ip: '1/900' })
    expect(
      await outcomes(
        all,
        many(100, () => at(0)),
      ),
    ).toEqual([1, 99])
    expect(
      await outcomes(
        all,
        many(20, (i) => at(i + 1)),
      ),
    ).toEqual([9, 11])
  })

  it('limits calls without a credential too', async () => {
    const { takeIp } = limiters({ limit_cell_read: '2/60' })
    let subnet = 0
    expect(await admitted(50, () => takeIp('cell_read', at(subnet++)))).toBe(20)
  })

  it('is no limit for a translator, through which all of IPv4 may come', async () => {
    const all = limiters({ limit_login_ip: '1/900' })
    expect(
      await outcomes(
        all,
        many(50, (i) => `64:ff9b::cb00:${(i + 1).toString(16)}`),
      ),
    ).toEqual([50, 0])
    expect(await outcomes(all, ['64:ff9b::cb00:1', '203.0.0.1'])).toEqual([0, 2])
  })
})

import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { canonicalIp, isLoopbackHost, parseNetwork } from '../config/ip.ts'
import { StartError } from '../errors.ts'
import { limiterIp } from '../limits/limiters.ts'
import { clientIp, compileTrustedProxies } from './client-ip.ts'

const proxies = compileTrustedProxies(['10.0.0.0/8', '192.168.1.1', '2001:db8:f::/48', '::1'])

describe('the client address', () => {
  const table: [peer: string, forwarded: string | undefined, ip: string][] = [
    ['203.0.113.7', undefined, '203.0.113.7'],
    ['::ffff:203.0.113.7', undefined, '203.0.113.7'],
    ['::FFFF:cb00:7107', undefined, '203.0.113.7'],
    ['2001:DB8:0:0:0:0:0:1', undefined, '2001:db8::1'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    // a peer that is not trusted: the header is ignored
    ['203.0.113.7', '1.2.3.4', '203.0.113.7'],
    ['11.0.0.1', '1.2.3.4', '11.0.0.1'],
    // a trusted peer: the first valid untrusted entry from the right
    ['10.0.0.1', '1.2.3.4', '1.2.3.4'],
    ['::ffff:10.0.0.1', '1.2.3.4', '1.2.3.4'],
    ['10.0.0.1', '6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['10.0.0.1', '6.6.6.6,1.2.3.4,10.1.1.1 , 192.168.1.1', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, ::ffff:10.1.1.1', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, 192.168.1.2', '192.168.1.2'],
    ['2001:db8:f:1::9', '2001:DB8::0:1', '2001:db8::1'],
    ['2001:db8:e::9', '1.2.3.4', '2001:db8:e::9'],
    ['10.0.0.1', '::ffff:1.2.3.4', '1.2.3.4'],
    // malformed entries are skipped
    ['10.0.0.1', '1.2.3.4, unknown, , _hidden, 5.6.7', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, 5.6.7.8:443', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, [2001:db8::1]', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, fe80::1%eth0', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, 05.6.7.8, 5.6.7.256, 0x1.2.3.4, 1::2::3', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, "5.6.7.8"', '1.2.3.4'],
    // all trusted: the leftmost valid entry; none valid: the peer
    ['10.0.0.1', 'x, 10.0.0.9, 10.0.0.8', '10.0.0.9'],
    ['10.0.0.1', 'unknown', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', ', ,', '10.0.0.1'],
  ]
  it.each(table)('peer %s, header %j: %s', (peer, forwarded, ip) => {
    expect(clientIp(peer, forwarded, proxies)).toBe(ip)
  })

  it.each([
    [undefined, /no client address/],
    ['', /no client address/],
    ['unknown', /"unknown" is no IP address/],
    ['/run/socket', /no IP address/],
    ['10.0.0.1:443', /without a port/],
  ])('of a connection with address %j is an error', (peer, why) => {
    expect(() => clientIp(peer, '1.2.3.4', proxies)).toThrow(why)
  })

  it('is reported when a header was ignored, and only then', () => {
    const ignored = vi.fn()
    clientIp('203.0.113.7', undefined, proxies, ignored)
    clientIp('10.0.0.1', '1.2.3.4', proxies, ignored)
    expect(ignored).not.toHaveBeenCalled()
    clientIp('203.0.113.7', '1.2.3.4', proxies, ignored)
    expect(ignored).toHaveBeenCalledOnce()
  })

  it('never comes from what a client put on the left of what the proxy added', () => {
    const noise = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ unit: anyCharacter }))
    fc.assert(
      fc.property(fc.array(noise), (entries) => {
        const forwarded = [...entries, '198.51.100.1', '10.2.2.2'].join(', ')
        expect(clientIp('10.0.0.1', forwarded, proxies)).toBe('198.51.100.1')
        expect(clientIp('203.0.113.7', forwarded, proxies)).toBe('203.0.113.7')
      }),
    )
  })
})

describe('trusted proxies', () => {
  const bad = [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/8.5',
    '10.0.0.0/08',
    '10.0.0.0/ 8',
    '10.0.0.0/255.0.0.0',
    '10.0.0.1/8',
    '10.0.0.0/6',
    '10.0.0',
    '10.0.0.256',
    '2001:db8::/129',
    '2001:db8::1/64',
    '2001:db8::/28',
    '[::1]',
    '::1%lo',
    '10.0.0.1:80',
    '::ffff:10.0.0.0/95',
    '::ffff:10.0.0.1/104',
    '*',
  ]
  it.each(bad)('%j is refused', (entry) => {
    expect(parseNetwork(entry)).toMatch(/^must /)
    expect(() => compileTrustedProxies(['::1', entry])).toThrow(StartError)
    expect(() => compileTrustedProxies(['::1', entry])).toThrow(/entry 2/)
  })

  const good: [entry: string, inside: string, outside: string][] = [
    ['10.0.0.0/8', '10.255.255.255', '11.0.0.0'],
    ['10.0.0.1', '10.0.0.1', '10.0.0.2'],
    ['10.0.0.1/32', '10.0.0.1', '10.0.0.2'],
    ['128.0.0.0/1', '255.255.255.255', '127.255.255.255'],
    ['0.0.0.0/0', '203.0.113.7', '2001:db8::1'],
    ['::/0', '2001:db8::1', '203.0.113.7'],
    ['2001:DB8::/32', '2001:db8:ffff::1', '2001:db9::'],
    ['::1/128', '::1', '::2'],
    ['::ffff:10.0.0.0/104', '10.1.2.3', '11.0.0.0'],
    ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.2'],
  ]
  it.each(good)('%s holds %s and not %s', (entry, inside, outside) => {
    const trusts = compileTrustedProxies([entry])
    expect(trusts(inside)).toBe(true)
    expect(trusts(outside)).toBe(false)
  })

  it('if none are given, nobody is trusted', () => {
    expect(compileTrustedProxies([])('127.0.0.1')).toBe(false)
  })
})

describe('the canonical form of an address', () => {
  it('agrees with the URL standard for every IPv6 address, a mapped one being IPv4', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const standard = new URL(`http://[${text}]/`).hostname.slice(1, -1)
        const mapped = /^::ffff:[0-9a-f]+:[0-9a-f]+$/.test(standard)
        expect(canonicalIp(text.toUpperCase())).toBe(
          mapped ? expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/) : standard,
        )
      }),
      { numRuns: 500 },
    )
  })

  it('is the same however it is written', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        expect(canonicalIp(text)).toBe(text)
        expect(canonicalIp(`::ffff:${text}`)).toBe(text)
        expect(canonicalIp(`0:0:0:0:0:FFFF:${text}`)).toBe(text)
      }),
    )
  })

  it.each([
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['1::', '1::'],
    ['::1.2.3.4', '::102:304'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalIp(text)).toBe(canonical)
  })

  it.each(['', '1.2.3', '01.2.3.4', '1.2.3.4 ', 'fe80::1%1', '[::1]', '::1/128', 'g::'])(
    '%j is none',
    (text) => {
      expect(canonicalIp(text)).toBeUndefined()
    },
  )

  it.each([
    ['localhost', true],
    ['LocalHost', true],
    ['127.0.0.1', true],
    ['127.255.1.2', true],
    ['0:0:0:0:0:0:0:1', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['::', false],
    ['128.0.0.1', false],
    ['127.evil.example', false],
    ['localhost.evil.example', false],
  ])('host %s is a loopback address: %s', (host, loopback) => {
    expect(isLoopbackHost(host)).toBe(loopback)
  })
})

describe('the key of IP limiters', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8::/64'],
    ['::1', '::/64'],
    // NAT64: the well-known prefix, and /96 networks of the one for local use.
    ['64:ff9b::cb00:7107', '203.0.113.7'],
    ['64:ff9b:1::cb00:7107', '203.0.113.7'],
    ['64:ff9b:1:77::cb00:7107', '203.0.113.7'],
    ['64:ff9b:1:cb00:71:700::', '64:ff9b:1:cb00:71:700::'],
    // 6to4, whatever network lies behind the router; Teredo with the client's bits inverted.
    ['2002:cb00:7107:1:2:3:4:5', '203.0.113.7'],
    ['2001:0:1:2:8000:63bf:34ff:8ef8', '203.0.113.7'],
    // Near those prefixes, but not in them.
    ['64:ff9b:0:1::cb00:7107', '64:ff9b:0:1::/64'],
    ['64:ff9b::1:0:cb00:7107', '64:ff9b::/64'],
    ['64:ff9b:2::cb00:7107', '64:ff9b:2::/64'],
    ['2001:1::cb00:7107', '2001:1::/64'],
    ['2003:cb00:7107::1', '2003:cb00:7107::/64'],
  ])('of %s is %s', (ip, key) => {
    expect(limiterIp(ip)).toBe(key)
  })

  it('is one for all addresses of a /64, another for the next', () => {
    const words = fc.tuple(...Array.from({ length: 4 }, () => fc.integer({ min: 0, max: 0xffff })))
    fc.assert(
      fc.property(words, (low) => {
        const tail = low.map((word) => word.toString(16)).join(':')
        const keyOf = (head: string) => limiterIp(clientIp(`${head}:${tail}`, undefined, proxies))
        expect(keyOf('2001:db8:0:7')).toBe('2001:db8:0:7::/64')
        expect(keyOf('2001:db8:0:8')).not.toBe(keyOf('2001:db8:0:7'))
      }),
    )
  })
})

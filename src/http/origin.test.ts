import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { checkOriginPattern } from '../config/origins.ts'
import { StartError } from '../errors.ts'
import { compileOrigins } from './origin.ts'

const passes = (pattern: string, origin: string): boolean => compileOrigins([pattern])(origin)

describe('a pattern', () => {
  const table: [pattern: string, origin: string, allowed: boolean][] = [
    ['https://a.example', 'https://a.example', true],
    ['https://a.example', 'HTTPS://A.Example', true],
    ['HTTPS://A.EXAMPLE', 'https://a.example', true],
    ['https://a.example', 'http://a.example', false],
    ['https://a.example', 'https://a.example.evil', false],
    ['https://a.example', 'https://evil-a.example', false],
    ['https://a.example', 'https://evil.example/https://a.example', false],
    ['https://a.example', 'https://aXexample', false],
    ['https://a.example', 'https://a.example/', false],
    ['https://a.example', 'https://a.example\n', false],
    ['https://a.example', '', false],
    ['https://a.example', 'null', false],
    ['https://a.example', 'https://a.example, https://a.example', false],
    // a trailing dot makes another host
    ['https://a.example', 'https://a.example.', false],
    ['https://a.example.', 'https://a.example.', true],
    ['https://a.example.', 'https://a.example', false],
    // ports are literal
    ['https://a.example', 'https://a.example:443', false],
    ['https://a.example', 'https://a.example:8443', false],
    ['https://a.example:443', 'https://a.example', false],
    ['https://a.example:443', 'https://a.example:443', true],
    ['https://a.example:8443', 'https://a.example:84430', false],
    ['http://localhost:*', 'http://localhost', true],
    ['http://localhost:*', 'http://localhost:5173', true],
    ['http://localhost:*', 'http://localhost:', false],
    ['http://localhost:*', 'http://localhost:x', false],
    ['http://localhost:*', 'http://localhost:1@evil.example', false],
    // a wildcard is one whole label
    ['https://*.x.example', 'https://x.example', false],
    ['https://*.x.example', 'https://a.b.x.example', false],
    ['https://*.x.example', 'https://A.x.example', true],
    ['https://*.x.example', 'https://.x.example', false],
    ['https://*.x.example', 'https://evil.example:1.x.example', false],
    ['https://*.x.example', 'https://user@a.x.example', false],
    ['https://*.*.x.example', 'https://a.b.x.example', true],
    ['https://*.*.x.example', 'https://a.x.example', false],
    ['https://a.*.example', 'https://a.b.example', true],
    ['https://*', 'https://a', true],
    ['https://*', 'https://a.b', false],
    ['https://*', 'https://a, b', false],
    ['https://*', 'https://[::1]', false],
    // case folds in ASCII only
    ['https://k.example', 'https://\u212a.example', false],
    ['https://s.example', 'https://\u017f.example', false],
    // addresses
    ['http://127.0.0.1:*', 'http://127.0.0.1:80', true],
    ['http://127.0.0.1:*', 'http://127a0.0.1:80', false],
    ['http://[::1]:*', 'http://[::1]:3000', true],
    ['http://[::1]:*', 'http://[::1]', true],
    ['http://[0:0:0:0:0:0:0:1]', 'http://[::1]', true],
    ['http://[2001:DB8::A]', 'http://[2001:db8:0:0::a]', true],
    ['http://[::1]', 'http://[::2]', false],
    ['http://[::1]', 'http://[::1%lo]', false],
    ['http://[::1]', 'http://[]', false],
    ['http://[::ffff:1.2.3.4]', 'http://[::ffff:102:304]', true],
    ['http://[::ffff:1.2.3.4]', 'http://1.2.3.4', false],
  ]
  it.each(table)('%s on %j: %s', (pattern, origin, allowed) => {
    expect(passes(pattern, origin)).toBe(allowed)
  })

  it('is one of several: any may match', () => {
    const allows = compileOrigins(['https://a.example', 'http://*.b.example:8080'])
    expect(allows('http://x.b.example:8080')).toBe(true)
    expect(allows('http://x.b.example')).toBe(false)
  })

  const label = fc.stringMatching(/^[a-z0-9]{1,8}$/)
  it('with a wildcard matches exactly the hosts with one label in its place', () => {
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), (labels) => {
        expect(passes('https://*.x.example', `https://${labels.join('.')}.x.example`)).toBe(
          labels.length === 1,
        )
      }),
    )
  })

  it('without a wildcard matches itself and no other text', () => {
    const host = fc
      .array(label, { minLength: 1, maxLength: 3 })
      .map((labels) => `${labels.join('.')}.example`)
    const port = fc.option(fc.integer({ min: 1, max: 65535 }), { nil: undefined })
    const origin = fc.tuple(fc.constantFrom('http', 'https'), host, port).map(([scheme, name, number]) => {
      return `${scheme}://${name}${number === undefined ? '' : `:${number}`}`
    })
    fc.assert(
      fc.property(origin, origin, fc.string(), (pattern, another, noise) => {
        expect(passes(pattern, pattern.toUpperCase())).toBe(true)
        expect(passes(pattern, another)).toBe(pattern === another)
        expect(passes(pattern, pattern + noise)).toBe(noise === '')
        expect(passes(pattern, noise + pattern)).toBe(noise === '')
      }),
    )
  })
})

describe('a list is refused', () => {
  const bad = [
    '',
    '*',
    'null',
    'a.example',
    '//a.example',
    'ftp://a.example',
    'ws://a.example',
    'https:/a.example',
    'https://',
    'https://:443',
    'https://a.example/',
    'https://a.example/path',
    'https://a.example?q',
    'https://a.example#f',
    'https://a.example\\x',
    'https://user@a.example',
    'https://user:pw@a.example',
    'https://a..example',
    'https://.example',
    'https://.',
    'https://a.example..',
    'https://a*.example',
    'https://**.example',
    'https://*a.example',
    'https://ä.example',
    'https://a b.example',
    ' https://a.example',
    'https://a.example\n',
    'https://a.example:',
    'https://a.example:0',
    'https://a.example:0443',
    'https://a.example:65536',
    'https://a.example:80:81',
    'https://a.example:8*',
    'http://127.1',
    'http://1.2.3.256',
    'http://0x7f000001',
    'http://::1',
    'http://[::1',
    'http://[::1]x',
    'http://[*::1]',
    'http://[fe80::1%eth0]',
    'http://[1.2.3.4]',
    `https://${'a'.repeat(64)}.example`,
    `https://${'a.'.repeat(124)}example`,
  ]
  it.each(bad)('for the pattern %j', (pattern) => {
    expect(checkOriginPattern(pattern)).toMatch(/^(must|may) /)
    expect(() => compileOrigins(['https://a.example', pattern])).toThrow(StartError)
    expect(() => compileOrigins(['https://a.example', pattern])).toThrow(/entry 2/)
  })

  it('when it is empty', () => {
    expect(() => compileOrigins([])).toThrow(/at least one pattern/)
  })

  it('never by another error, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        for (const pattern of [text, `https://${text}`, `http://[${text}]`]) {
          const rule = checkOriginPattern(pattern)
          if (rule === undefined) expect(compileOrigins([pattern])).toBeTypeOf('function')
          else expect(() => compileOrigins([pattern])).toThrow(StartError)
        }
      }),
    )
  })
})

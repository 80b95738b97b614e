import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { toIssues } from '../wire/issues.ts'
import {
  ActorName,
  Email,
  fold,
  foldName,
  identifierOf,
  PASSWORD_LENGTH_MIN,
  Password,
  PasswordProvided,
  SessionId,
  Username,
  UsernameProvided,
} from './formats.ts'

/** The parsed value, or the code of its one issue. */
function result(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const codes = toIssues(parsed.error).map(({ code }) => code)
  return { refused: codes.length === 1 ? codes[0] : codes }
}
const refused = (code: string) => ({ refused: code })
const kelvin = '\u212a'
const longS = '\u017f'

describe('Username', () => {
  test.each([
    '1user',
    '_user',
    '-user',
    'user-',
    'user_',
    'us er',
    'user.x',
    'us@er',
    ' user',
    'user ',
    'user\n',
    'Ωuser',
    'usér',
    `${kelvin}elvin`,
    `u${longS}er`,
    'us\0er',
  ])('refuses %j as invalid_format', (name) => {
    expect(result(Username, name)).toEqual(refused('invalid_format'))
  })

  test('3 and 39 characters pass, 2 and 40 do not', () => {
    expect(result(Username, 'abc')).toBe('abc')
    expect(result(Username, 'a'.repeat(39))).toBe('a'.repeat(39))
    expect(result(Username, 'ab')).toEqual(refused('too_small'))
    expect(result(Username, '')).toEqual(refused('too_small'))
    expect(result(Username, 'a'.repeat(40))).toEqual(refused('too_big'))
  })

  test('becomes lower case', () => {
    expect(result(Username, 'ABc')).toBe('abc')
    expect(result(Username, 'A-_9')).toBe('a-_9')
  })
})

describe('UsernameProvided', () => {
  test.each([
    ['ABc', 'abc'],
    ['  USER@Example.COM ', 'user@example.com'],
    ['É@X.io', 'é@x.io'],
    ['e\u0301@x.io', 'é@x.io'],
    ['İ@x.io', 'i\u0307@x.io'],
    [`${kelvin}elvin`, `${kelvin}elvin`],
    ['ÉLODIE', 'Élodie'],
    ['a', 'a'],
  ])('%j becomes the key %j', (typed, key) => {
    expect(result(UsernameProvided, typed)).toBe(key)
  })

  test('1..255 code points as typed, and something after trim', () => {
    expect(result(UsernameProvided, '')).toEqual(refused('too_small'))
    expect(result(UsernameProvided, ' \t\n\u00a0')).toEqual(refused('too_small'))
    expect(result(UsernameProvided, '😀'.repeat(255))).toBe('😀'.repeat(255))
    expect(result(UsernameProvided, 'a'.repeat(256))).toEqual(refused('too_big'))
    expect(result(UsernameProvided, `a${' '.repeat(255)}`)).toEqual(refused('too_big'))
  })
})

describe('identifierOf', () => {
  test('an @ decides between email and username', () => {
    expect(identifierOf(' Ab@C.d ')).toEqual({ kind: 'email', key: 'ab@c.d' })
    expect(identifierOf(' AbC ')).toEqual({ kind: 'username', key: 'abc' })
  })

  test('parsed or as typed, the key is the same', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, minLength: 1 }), fc.boolean(), (typed, withAt) => {
        const text = withAt ? `${typed}@` : typed
        const parsed = UsernameProvided.safeParse(text)
        if (parsed.success) expect(identifierOf(parsed.data)).toEqual(identifierOf(text))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('Email', () => {
  test.each([
    '',
    '@',
    'a@',
    '@b.c',
    'ab.c',
    'user@.com',
    'user@com.',
    'user@com',
    'a@@b.c',
    'a@b@c.d',
    'a@b.c@d',
    'a@b.c@d.e',
    'a b@c.d',
    'a@b.c ',
    ' a@b.c',
    'a\tb@c.d',
    'a@b.c\n',
    'a\u0085@b.c',
    'a\u007f@b.c',
    'a\u0000@b.c',
    'a\u00a0@b.c',
    'a\u2028@b.c',
    'a@b.c\ufeff',
  ])('refuses %j as invalid_format', (address) => {
    expect(result(Email, address)).toEqual(refused('invalid_format'))
  })

  test.each(['a@b.c', 'a..b@c.d', 'user+tag@example.co.uk', 'É@X.io', 'a@b..c', '"q"@x.y'])(
    'takes %j as given',
    (address) => {
      expect(result(Email, address)).toBe(address)
    },
  )

  test('254 bytes pass, more do not', () => {
    expect(result(Email, `${'ü'.repeat(121)}@example.com`)).toBe(`${'ü'.repeat(121)}@example.com`)
    expect(result(Email, `${'ü'.repeat(122)}@example.com`)).toEqual(refused('too_big'))
  })
})

describe('passwords', () => {
  test('a new one has 12..300 code points', () => {
    expect(PASSWORD_LENGTH_MIN).toBe(12)
    expect(result(Password, '😀'.repeat(12))).toBe('😀'.repeat(12))
    expect(result(Password, '😀'.repeat(11))).toEqual(refused('too_small'))
    expect(result(Password, '😀'.repeat(300))).toBe('😀'.repeat(300))
    expect(result(Password, 'a'.repeat(301))).toEqual(refused('too_big'))
    expect(result(Password, '')).toEqual(refused('too_small'))
  })

  test('a provided one has 1..300', () => {
    expect(result(PasswordProvided, '')).toEqual(refused('too_small'))
    expect(result(PasswordProvided, ' ')).toBe(' ')
    expect(result(PasswordProvided, '😀'.repeat(300))).toBe('😀'.repeat(300))
    expect(result(PasswordProvided, '😀'.repeat(301))).toEqual(refused('too_big'))
  })

  test('spaces, case and composition stay as received', () => {
    const password = '  E\u0301É Tab\t  end  '
    expect(result(Password, password)).toBe(password)
    expect(result(PasswordProvided, password)).toBe(password)
  })
})

test('SessionId is 64 lower-case hex digits', () => {
  expect(result(SessionId, 'a1'.repeat(32))).toBe('a1'.repeat(32))
  for (const id of [
    'a'.repeat(63),
    'a'.repeat(65),
    'A'.repeat(64),
    'g'.repeat(64),
    `${'a'.repeat(64)}\n`,
    '',
  ])
    expect(result(SessionId, id)).toEqual(refused('invalid_format'))
})

describe('ActorName', () => {
  test('is trimmed and may be blank', () => {
    expect(result(ActorName, '  Zoë  ')).toBe('Zoë')
    expect(result(ActorName, '   ')).toBe('')
    expect(result(ActorName, '')).toBe('')
  })

  test('100 code points after trim pass, 101 do not', () => {
    expect(result(ActorName, ` ${'😀'.repeat(100)} `)).toBe('😀'.repeat(100))
    expect(result(ActorName, 'a'.repeat(101))).toEqual(refused('too_big'))
  })

  test.each(['a\tb', '\ta', 'a\n', 'a\u0000', 'a\u007f', 'a\u0085', `\t${'a'.repeat(200)}`])(
    'refuses control characters: %j',
    (name) => {
      expect(result(ActorName, name)).toEqual(refused('invalid_format'))
    },
  )
})

describe('fold', () => {
  test.each([
    ['É@x.io', 'e\u0301@x.io'],
    ['USER', 'user'],
    ['Å', '\u212b'],
    ['ΑΣ', 'ασ'],
    ['ς', 'σ'],
    ['µ', 'μ'],
    ['ſ', 's'],
    ['ẞ', 'ß'],
    ['ﬅ', 'ﬆ'],
    ['H\u0331', '\u1e96'],
  ])('%j and %j are one', (a, b) => {
    expect(fold(a)).toBe(fold(b))
  })

  test.each([
    ['İ', 'i'],
    ['ı', 'i'],
    ['ß', 'ss'],
    ['ﬁ', 'fi'],
  ])('%j and %j stay apart', (a, b) => {
    expect(fold(a)).not.toBe(fold(b))
  })

  test('treats every case of every letter alike, except where case adds or drops letters', () => {
    const apart: string[] = []
    for (let code = 0; code < 0x110000; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      const point = String.fromCodePoint(code)
      const forms = point.toLowerCase() + point.toUpperCase() + point.normalize('NFKD')
      if (forms === point + point + point) continue
      if (fold(fold(point)) !== fold(point) || foldName(foldName(point)) !== foldName(point))
        apart.push(`not idempotent: ${point}`)
      for (const other of [point.toLowerCase(), point.toUpperCase()])
        if ([...other].length === 1 && fold(other) !== fold(point)) apart.push(point)
    }
    // Its upper case is I, which most languages write for the dotted i.
    expect(apart).toEqual(['ı'])
  })

  test('names treat compatibility variants alike, too', () => {
    for (const [a, b] of [
      ['ﬁ', 'fi'],
      ['Ａ', 'a'],
      ['㎒', 'mhz'],
      ['𝐈\u0307', 'İ'],
      ['ΟΔΟΣ', 'οδος'],
      ['µ', 'Μ'],
    ] as const)
      expect(foldName(a)).toBe(foldName(b))
    expect(foldName('ß')).not.toBe(foldName('ss'))
  })

  test('does not look at neighbours', () => {
    expect(fold('ΟΔΟΣ')).toBe('οδοσ')
    expect(fold('Σ')).toBe('σ')
  })

  test('is idempotent, composed, and independent of composition and ASCII case', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.string({
        unit: fc.constantFrom(
          'A',
          'z',
          'É',
          'e',
          '\u0301',
          '\u0331',
          'İ',
          'H',
          'Σ',
          'ǅ',
          kelvin,
          '각',
          '\u0345',
        ),
      }),
    )
    fc.assert(
      fc.property(text, (value) => {
        const folded = fold(value)
        expect(fold(folded)).toBe(folded)
        expect(folded.normalize('NFC')).toBe(folded)
        expect(fold(value.normalize('NFD'))).toBe(folded)
        expect(fold(value.replace(/[a-z]/g, (letter) => letter.toUpperCase()))).toBe(folded)
      }),
      { numRuns: 2000 },
    )
  })
})

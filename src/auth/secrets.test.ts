import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sessionIdOf } from './cookie.ts'
import { equalText, randomToken, sha256Hex } from './secrets.ts'

test('a token is 32 bytes as 43 base64url characters, never the same twice', () => {
  const tokens = Array.from({ length: 1000 }, randomToken)
  for (const token of tokens) {
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(Buffer.from(token, 'base64url')).toHaveLength(32)
  }
  expect(new Set(tokens).size).toBe(1000)
})

test('sha256Hex is lower-case hex of the UTF-8 text', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256Hex('ü')).toBe('607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f')
  expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test('a session id is the hash of the token text, not of its bytes', () => {
  const token = 'A'.repeat(43)
  expect(sessionIdOf(token)).toBe(sha256Hex(token))
  expect(sessionIdOf(token)).toMatch(/^[0-9a-f]{64}$/)
})

test('equalText compares texts of any lengths exactly', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (a, b) => {
      expect(equalText(a, a)).toBe(true)
      expect(equalText(a, b)).toBe(a === b)
      expect(equalText(a, `${a}x`)).toBe(false)
    }),
  )
})

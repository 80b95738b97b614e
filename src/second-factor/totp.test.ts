import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { base32, codeAt, newSecret, stepOf, TotpCode } from './totp.ts'

// The vectors of RFC 6238, appendix B, have eight digits; the last six are the code.
const secret = Buffer.from('12345678901234567890')

it.each([
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
])('at second %d the code of RFC 6238 is %s', (seconds, code) => {
  expect(codeAt(secret, Math.floor(seconds / 30))).toBe(code)
})

it('accepts the present step and its neighbours, and none further away', () => {
  const now = 1_700_000_010_000
  const present = Math.floor(now / 30_000)
  const accepted = [-2, -1, 0, 1, 2].map((off) => stepOf(secret, codeAt(secret, present + off), now))
  expect(accepted).toEqual([undefined, present - 1, present, present + 1, undefined])
})

it('uses up the later of two steps that have one code', () => {
  const first = 56_188_870
  expect([codeAt(secret, first), codeAt(secret, first + 1)]).toEqual(['617002', '617002'])
  for (const seconds of [0, 30])
    expect(stepOf(secret, '617002', (first * 30 + seconds) * 1000)).toBe(first + 1)
})

it('takes six ASCII digits, with spaces between them', () => {
  expect(TotpCode.parse(' 123 456')).toBe('123456')
  for (const bad of ['12345', '1234567', '12345a', '１２３４５６', '123\t456', ''])
    expect(TotpCode.safeParse(bad).success, bad).toBe(false)
})

it('writes secrets in base32', () => {
  expect(base32(secret)).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
})

const found = spawnSync('oathtool', ['--version'])
it.skipIf(found.error !== undefined)('agrees with oathtool on secrets and moments of any kind', () => {
  for (let n = 0; n < 50; n++) {
    const [own, seconds] = [newSecret(), Math.floor(Math.random() * 4_000_000_000)]
    const told = spawnSync('oathtool', ['--totp', '--base32', `--now=@${seconds}`, base32(own)], {
      encoding: 'utf8',
    })
    expect(codeAt(own, Math.floor(seconds / 30))).toBe(told.stdout.trim())
  }
})

import { expect, it } from 'vitest'
import { Username } from '../accounts/formats.ts'
import { usernameCandidates, usernameFrom } from './identity.ts'

it.each([
  ['ada', 'ada'],
  ['Ada.Lovelace@corp.example', 'ada-lovelace'],
  ['Ä. B', 'a-b'],
  ['  Zoë Ångström ', 'zoe-angstrom'],
  ['1984_b', 'user-b'],
  ['x', 'user-x'],
  ['', 'user'],
  ['@corp.example', 'user'],
  ['李小龙', 'user'],
  ['a\0b\ud800c', 'a-b-c'],
  ['under_score-', 'under_score'],
  ['a'.repeat(200), 'a'.repeat(39)],
  [`${'a'.repeat(38)}.b`, 'a'.repeat(38)],
])('the claim %j becomes the username %s', (claim, username) => {
  expect(usernameFrom(claim)).toBe(username)
})

it('a taken name gets a number, then a random end; all are usernames', () => {
  for (const username of ['admin', 'a'.repeat(39), `${'a'.repeat(35)}-b-c`]) {
    const candidates = usernameCandidates(username)
    expect(candidates).toHaveLength(21)
    expect(new Set(candidates).size).toBe(21)
    expect(candidates.map((name) => Username.parse(name))).toEqual(candidates)
  }
  expect(usernameCandidates('admin').slice(0, 3)).toEqual(['admin', 'admin-2', 'admin-3'])
  expect(usernameCandidates('admin')[19]).toBe('admin-20')
  expect(usernameCandidates('admin')[20]).toMatch(/^admin-[0-9a-f]{8}$/)
})

import { expect, it } from 'vitest'
import { createSealing, type Place } from './sealing.ts'

const [a, b] = ['a'.repeat(32), 'b'.repeat(32)] as const
const sealing = createSealing([a])
const place: Place = { table: 'account_totp', row: 'row', owner: 'owner' }
const sealed = sealing.seal('geheim ü', place)

it('opens what it sealed, at the same place only', () => {
  expect(sealed).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]{16}\.[\w-]+$/)
  expect(sealed.startsWith(sealing.prefix)).toBe(true)
  expect(sealing.open(sealed, place)).toBe('geheim ü')
  for (const other of [{ table: 'message_outbox' }, { row: 'other' }, { owner: 'other' }])
    expect(sealing.open(sealed, { ...place, ...other })).toBeUndefined()
  expect(sealing.open(sealed, { ...place, row: 'row","owner', owner: '' })).toBeUndefined()
})

it('the same text is never sealed the same way twice', () => {
  expect(sealing.seal('geheim ü', place)).not.toBe(sealed)
})

it('a text that was cut, lengthened or changed at any place does not open', () => {
  const changed = [...sealed].flatMap((letter, at) => {
    const other = letter === 'A' ? 'B' : 'A'
    return [sealed.slice(0, at), sealed.slice(0, at) + other + sealed.slice(at + 1)]
  })
  for (const text of [...changed, `${sealed}A`, `${sealed}=`, `${sealed}\n`, ` ${sealed}`])
    expect(sealing.open(text, place), text).toBeUndefined()
})

it('all keys of the ring open and the first one seals; a dropped key opens nothing', () => {
  const rotated = createSealing([b, a])
  expect(rotated.open(sealed, place)).toBe('geheim ü')
  expect(rotated.prefix).not.toBe(sealing.prefix)
  expect(rotated.seal('x', place).startsWith(rotated.prefix)).toBe(true)
  expect(createSealing([b]).open(sealed, place)).toBeUndefined()
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { createKeyRing } from '../auth/key-ring.ts'
import { type CursorKey, createCursors } from './cursor.ts'

const oldKey = 'old-key-old-key-old-key-old-key-1'
const newKey = 'new-key-new-key-new-key-new-key-2'
const cursorsOf = (...keys: string[]) => createCursors(createKeyRing(keys).derive('cursor'))
const cursors = cursorsOf(oldKey)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const key: CursorKey = ['2026-01-02T03:04:05.678Z', '11111111-1111-4111-8111-111111111111']
const keys = fc.array(
  fc.oneof(fc.string({ unit: anyCharacter, maxLength: 12 }), fc.integer(), fc.constant(null)),
  { maxLength: 4 },
)
const binding = fc.string({ unit: anyCharacter })

describe('cursors', () => {
  test('give back the key, for the same binding only', () => {
    fc.assert(
      fc.property(binding, binding, keys, (own, other, written) => {
        const cursor = cursors.write(own, written)
        expect(cursor).toMatch(/^[A-Za-z0-9_-]{1,512}$/)
        expect(cursors.read(own, cursor)).toEqual(written)
        // The MAC sees lone surrogates as U+FFFD, but bindings consist of our own text and digests only.
        if (own.toWellFormed() !== other.toWellFormed()) expect(cursors.read(other, cursor)).toBeUndefined()
      }),
    )
  })

  test('no part moves between cursor and binding', () => {
    const cursor = cursors.write('list', key)
    const payload = cursor.slice(0, -43)
    const mac = cursor.slice(-43)
    for (let cut = 1; cut < payload.length; cut++)
      expect(cursors.read(`${payload.slice(cut)}.list`, payload.slice(0, cut) + mac)).toBeUndefined()
    expect(cursors.read('ist', `${payload}l${mac}`)).toBeUndefined()
  })

  test('any one character changed to any other is refused, the last ones of each part included', () => {
    // Keys of three lengths, so that base64url ends with 0, 2 and 4 unused bits.
    for (const written of [key, ['a'], ['ab'], ['abc'], []]) {
      const cursor = cursors.write('list', written)
      for (let i = 0; i < cursor.length; i++) {
        for (const other of `${alphabet}.= é`) {
          if (other === cursor[i]) continue
          expect(cursors.read('list', cursor.slice(0, i) + other + cursor.slice(i + 1))).toBeUndefined()
        }
      }
    }
  })

  test('anything cut or added is refused', () => {
    const cursor = cursors.write('list', key)
    for (let i = 0; i < cursor.length; i++) {
      expect(cursors.read('list', cursor.slice(0, i))).toBeUndefined()
      expect(cursors.read('list', cursor.slice(i + 1))).toBeUndefined()
      expect(cursors.read('list', cursor.slice(0, i) + cursor.slice(i + 1))).toBeUndefined()
      for (const more of ['A', '=', '.', ' '])
        expect(cursors.read('list', cursor.slice(0, i) + more + cursor.slice(i))).toBeUndefined()
    }
    for (const more of ['A', '=', '\n']) expect(cursors.read('list', cursor + more)).toBeUndefined()
  })

  test('garbage of any kind is refused and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: anyCharacter }),
          fc.base64String(),
          fc.string({ minLength: 500, maxLength: 600 }),
        ),
        (text) => {
          expect(cursors.read('list', text)).toBeUndefined()
        },
      ),
    )
    const unsigned = Buffer.from(JSON.stringify(key)).toString('base64url')
    expect(cursors.read('list', unsigned)).toBeUndefined()
    expect(cursors.read('list', unsigned + 'A'.repeat(43))).toBeUndefined()
  })

  test('survive a restart and a key rotation, and die with their key', () => {
    const cursor = cursors.write('list', key)
    expect(cursorsOf(oldKey).read('list', cursor)).toEqual(key)
    expect(cursorsOf(oldKey, newKey).read('list', cursor)).toEqual(key)
    expect(cursorsOf(newKey, oldKey).read('list', cursor)).toEqual(key)
    expect(cursorsOf(newKey).read('list', cursor)).toBeUndefined()
  })

  test('351 bytes of key fit into 512 characters; a longer key is a mistake of the list, not of the caller', () => {
    const longest = cursors.write('list', ['x'.repeat(351 - 4)])
    expect(longest.length).toBeLessThanOrEqual(512)
    expect(cursors.read('list', longest)).toEqual(['x'.repeat(347)])
    expect(() => cursors.write('list', ['x'.repeat(348)])).toThrow(RangeError)
  })
})

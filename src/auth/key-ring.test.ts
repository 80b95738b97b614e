import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyRing } from './key-ring.ts'

const oldKey = 'old-key-old-key-old-key-old-key-1'
const newKey = 'new-key-new-key-new-key-new-key-2'

test('the first key signs, every key verifies and returns its index', () => {
  const before = createKeyRing([oldKey])
  const after = createKeyRing([newKey, oldKey])
  expect(after.verify('x', before.sign('x'))).toBe(1)
  expect(after.verify('x', after.sign('x'))).toBe(0)
  expect(before.verify('x', after.sign('x'))).toBe(-1)
  expect(after.verify('y', after.sign('x'))).toBe(-1)
})

test('a mac is HMAC-SHA256 in base64url; any other encoding of it fails', () => {
  const ring = createKeyRing([oldKey])
  const mac = createHmac('sha256', oldKey).update('x').digest('base64url')
  expect(ring.sign('x')).toBe(mac)
  for (const other of ['', mac.slice(0, -1), `${mac}=`, `${mac}A`, mac.replace(/.$/, 'é'), ` ${mac}`])
    expect(ring.verify('x', other)).toBe(-1)
})

test('a derived Mac rotates with the ring and mixes neither with it nor with other purposes', () => {
  const before = createKeyRing([oldKey])
  const after = createKeyRing([newKey, oldKey])
  const mac = before.derive('cursor').sign('x')
  expect(after.derive('cursor').verify('x', mac)).toBe(1)
  expect(createKeyRing([newKey]).derive('cursor').verify('x', mac)).toBe(-1)
  expect(before.derive('other').verify('x', mac)).toBe(-1)
  expect(before.verify('x', mac)).toBe(-1)
  expect(before.derive('cursor').verify('x', before.sign('x'))).toBe(-1)
})

test('never reveals a key', () => {
  const ring = createKeyRing([oldKey])
  expect(JSON.stringify([ring, ring.derive('x')])).not.toContain(oldKey)
  expect(Object.keys(ring).sort()).toEqual(['derive', 'sign', 'verify'])
  for (const member of Object.values(ring)) expect(member).toBeTypeOf('function')
})

test('an empty ring is refused', () => {
  expect(() => createKeyRing([])).toThrow(RangeError)
})

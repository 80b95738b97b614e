import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { createTail } from './tail.ts'

const test = await serviceForFile()

it('reads again for who asks as soon as a reading has ended', async () => {
  const { app } = test.service
  // Nobody has joined, so no regular reading makes up for a missed one.
  const tail = createTail(app)
  await tail.fresh()
  await tail.fresh()
  const before = tail.position
  await test.account()
  await tail.fresh()
  expect(tail.position).toBeGreaterThan(before)
})

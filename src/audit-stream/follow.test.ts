import { expect, it, onTestFinished } from 'vitest'
import { follow } from '../../test/helpers/followers.ts'
import { streamFollower } from '../../test/helpers/stream-follower.ts'
import { testService } from '../testing/index.ts'

it('beside 12 writers who commit in another order than they wrote, a stream cut 3 times has each row once, rising', async () => {
  const test = await testService({ audit_stream: true })
  onTestFinished(() => test.close())
  const { cookie } = await test.account({ roles: ['admin'] })
  const rows = 4_000
  const follower = streamFollower(test, { headers: { cookie }, reconnects: 3, rows })
  const [found] = await follow(test.databaseUrl, [follower], { rows })
  expect(found?.faults).toEqual([])
  expect(found?.heard).toBeGreaterThanOrEqual(rows)
  expect(follower.cuts()).toBe(3)
})

import { expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { version } from '../wire/version.ts'

const test = await serviceForFile({ database_pool_max: 7, max_connections: 100, limit_lookup: '1/900' })
const [admin, ada] = await Promise.all([test.account({ roles: ['admin'] }), test.account()])

it('shows an admin what this node has answered and refused, and its connections', async () => {
  const before = await admin.client.service_status()
  expect(before).toEqual({
    version,
    node: process.version,
    started_at: expect.stringMatching(/^.{23}Z$/),
    requests: expect.any(Number),
    refusals: expect.any(Object),
    sockets: 0,
    streams: 0,
    max_connections: 100,
    database: { open: expect.any(Number), idle: expect.any(Number), waiting: 0, max: 7 },
    audit_rows_lost: 0,
  })
  expect(Date.parse(before.started_at)).toBeLessThanOrEqual(Date.now())
  const ids = [ada.actor_id]
  await ada.client.actor_lookup({ ids })
  for (let n = 0; n < 2; n++) expect(await reasonOf(ada.client.actor_lookup({ ids }))).toBe('rate_limited')
  expect(await reasonOf(ada.client.service_status())).toBe('insufficient_permissions')
  const socket = await openSocket(test.url, { cookie: ada.cookie })
  await socket.call('account_verify')
  const after = await admin.client.service_status()
  await socket.close()
  // The first status call, four calls, the message, and the upgrade if it was already logged as a request.
  expect(after.requests - before.requests).toBeGreaterThanOrEqual(6)
  expect(after.requests - before.requests).toBeLessThanOrEqual(7)
  expect(after.refusals).toEqual({ rate_limited: 2, insufficient_permissions: 1 })
  expect(after).toMatchObject({ sockets: 1, streams: 0 })
  expect(after.database.open).toBeGreaterThan(0)
  expect(after.database.open).toBeLessThanOrEqual(7)
})

import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { claimOne } from './claim.ts'
import { deliverOne } from './deliver.ts'
import { insertMessage, triedFor } from './outbox.ts'

const { app } = (await serviceForFile({ deliver: () => {} })).service

it('a stop before the transport is called leaves the message to the next node', async () => {
  const values = sql`(select null::uuid as account_id, null::uuid as invite_id, 'a@x.io' as email,
    now() + ${triedFor} as expires_at) one`
  const row = await claimOne(app, insertMessage(app, { purpose: 'test', values }))
  let calls = 0
  const deliver = () => void calls++
  expect(await deliverOne(app, deliver, row, AbortSignal.abort())).toBeUndefined()
  expect(calls).toBe(0)
  expect(await deliverOne(app, deliver, row)).toEqual({ state: 'sent', error: null })
  expect(calls).toBe(1)
})

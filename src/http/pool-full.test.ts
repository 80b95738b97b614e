import { expect, it } from 'vitest'
import { z } from 'zod'
import { call, dataOf, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'

const held: (() => void)[] = []
const actions = {
  holds: mutation({
    doc: 'Keeps its connection until the test lets it go.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.null(),
    async handler() {
      await new Promise<void>((resolve) => held.push(resolve))
      return null
    },
  }),
}

const test = await serviceForFile({ actions, database_pool_max: 2 })
const ada = await test.account()

it('a client that gets no connection within 5 s gets 503; session checks and health do not wait', async () => {
  const headers = { cookie: ada.cookie }
  const holding = [rpc(test.url, call('holds'), headers), rpc(test.url, call('holds'), headers)]
  await expect.poll(() => held.length).toBe(2)
  const late = [call('account_session_list'), call('cell_create', { data: {} })].map((body) =>
    rpc(test.url, body, headers),
  )
  expect((await rpc(test.url, call('account_verify'), headers)).status).toBe(200)
  expect((await send(test.url, { path: '/ready' })).status).toBe(200)
  for (const refused of await Promise.all(late))
    expect([refused.status, dataOf(refused)]).toMatchObject([503, { reason: 'service_unavailable' }])
  for (const release of held) release()
  expect((await Promise.all(holding)).map(({ status }) => status)).toEqual([200, 200])
  expect((await rpc(test.url, call('account_session_list'), headers)).status).toBe(200)
  // No transaction began, so none was rolled back.
  expect(await test.service.app.db.rows(sql`select from audit_entries() where outcome = 'failure'`)).toEqual(
    [],
  )
})

import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { call, rpc } from '../../test/helpers/http.ts'
import type { Actions } from '../actions.ts'
import { createLive } from '../client/live.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import type { ReasonsOf } from '../wire/consumer.ts'
import { mutation } from './declare.ts'
import { recorded } from './mutate.ts'

const reasons = {
  page_locked: { status: 409, message: 'Somebody edits this page.' },
  page_unpaid: { status: 402, message: 'The workspace has no plan.' },
  page_odd: { status: 400, message: 'Pages are even.' },
}

declare module '../wire/consumer.ts' {
  interface ConsumerReasons extends ReasonsOf<typeof reasons> {}
}

/** What `page_wait` asks for. */
let pause: unknown

const actions = {
  page_edit: mutation({
    doc: 'Refuses with the reason that the input names.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    input: z.strictObject({ reason: z.enum(['page_locked', 'page_unpaid', 'page_odd', 'cell_not_found']) }),
    output: z.null(),
    errors: ['page_locked', 'page_unpaid', 'page_odd', 'cell_not_found'],
    async handler({ reason }, { fail, account }) {
      const error = fail(reason, { by: account.id, reason: 'another' })
      throw reason === 'page_locked'
        ? recorded('cell_update', error, { cell_id: account.id } as never)
        : error
    },
  }),
  page_wait: mutation({
    doc: 'Refuses with the pause that the test has set.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.null(),
    errors: ['page_locked'],
    handler: async (_input, { fail }) => {
      throw fail('page_locked', { retry_after: pause })
    },
  }),
  page_typo: mutation({
    doc: 'Refuses with a reason that nobody declared.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.null(),
    handler: async (_input, { fail }) => {
      // @ts-expect-error the method lists no reasons
      throw fail('page_lockt')
    },
  }),
}
type Wiki = Actions & typeof actions

let test: TestService<Wiki>
let ada: TestAccount<Wiki>
beforeAll(async () => {
  test = await testService<Wiki>({ actions, reasons })
  ada = await test.account()
})
afterAll(() => test.close())

const edit = (reason: string) => rpc(test.url, call('page_edit', { reason }), { cookie: ada.cookie })

describe('a reason of a consumer', () => {
  it.each([
    ['page_locked', 409, -32004],
    ['page_unpaid', 402, -32000],
    ['page_odd', 400, -32602],
  ] as const)('%s has its status, its text and the code of the status', async (reason, status, code) => {
    const reply = await edit(reason)
    const { message } = reasons[reason]
    expect([reply.status, reply.json]).toEqual([
      status,
      { jsonrpc: '2.0', id: 1, error: { code, message, data: { by: ada.id, reason } } },
    ])
  })

  it('stands beside those of the service, whose text stays that of the code', async () => {
    expect((await edit('cell_not_found')).json).toMatchObject({
      error: { code: -32003, message: 'What was requested does not exist.' },
    })
  })

  it.each([
    [5, '5'],
    [0, '0'],
    [1.2, '2'],
    [-1.5, undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [1e30, undefined],
    ['5', undefined],
  ])('with retry_after %s has the header Retry-After: %s', async (retry_after, header) => {
    pause = retry_after
    const { status, headers } = await rpc(test.url, call('page_wait'), { cookie: ada.cookie })
    expect([status, headers['retry-after']]).toEqual([409, header])
  })

  it('is typed for the client, and arrives by HTTP, by socket and in process', async () => {
    const outcome = await ada.client.try.page_edit({ reason: 'page_locked' })
    if (outcome.ok) throw new Error('not refused')
    expect(outcome.error).toMatchObject({ reason: 'page_locked', status: 409 })
    expectTypeOf(outcome.error.reason).extract<`page_${string}`>().toEqualTypeOf<keyof typeof reasons>()
    const live = createLive<Wiki>({ url: test.url, headers: { cookie: ada.cookie } })
    await expect(live.page_edit({ reason: 'page_locked' })).rejects.toMatchObject({ reason: 'page_locked' })
    live.close()
    await expect(
      test.service.call('page_edit', { reason: 'page_unpaid' }, { headers: { cookie: ada.cookie } }),
    ).rejects.toMatchObject({ status: 402, data: { reason: 'page_unpaid' } })
  })

  it('that was never declared is an internal error', async () => {
    expect(await ada.client.try.page_typo()).toMatchObject({ ok: false, error: { reason: 'internal_error' } })
  })

  it('belongs to one service: another without it does not start with the method', async () => {
    await expect(testService({ actions })).rejects.toMatchObject({
      reason: 'invalid_action',
      message: expect.stringContaining('the reason "page_locked" does not exist; declare it in reasons.'),
    })
  })
})

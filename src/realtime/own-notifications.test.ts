import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import type { Actions } from '../actions.ts'
import { createLive, type LiveClient, type LiveEvents } from '../client/live.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import { sql } from '../db/sql.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'
import type { NotificationsOf } from '../wire/consumer.ts'

const notifications = {
  page_changed: z.strictObject({ page_id: z.uuid(), by: z.string().optional() }),
  page_words: z.strictObject({ words: z.record(z.string(), z.int()) }),
  page_text: z.strictObject({ text: z.string() }),
}

declare module '../wire/consumer.ts' {
  interface ConsumerNotifications extends NotificationsOf<typeof notifications> {}
}

let work: (tools: Work) => unknown = () => {}
const actions = {
  page_touch: mutation({
    doc: 'Does what the test says.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.null(),
    async handler(_input, tools) {
      await work(tools)
      return null
    },
  }),
}
type Wiki = Actions & typeof actions

const captured = capturedLog()
const options = { actions, notifications, log: captured.log }
let test: TestService<Wiki>
let other: TestService<Wiki>
let ada: TestAccount<Wiki>
let bob: TestAccount<Wiki>
beforeAll(async () => {
  test = await testService<Wiki>(options)
  other = await testService<Wiki>({ ...options, database_url: test.databaseUrl })
  ;[ada, bob] = await Promise.all([test.account(), test.account()])
})
afterAll(async () => {
  await other.close()
  await test.close()
})

const open: LiveClient[] = []
afterEach(() => {
  for (const live of open.splice(0)) live.close()
})

/** A connected socket of bob, and every notification about pages that it gets. */
async function listening(node = test) {
  const live = createLive<Wiki>({ url: node.url, headers: { cookie: bob.cookie } })
  open.push(live)
  const heard: unknown[] = []
  live.on('page_changed', (params) => void heard.push(params))
  await live.account_verify()
  const next = (): Promise<unknown> =>
    new Promise((resolve) => {
      const off = live.on('page_changed', (params) => {
        off()
        resolve(params)
      })
    })
  return { heard, next }
}

async function touch(handler: (tools: Work) => unknown): Promise<string> {
  work = handler
  const outcome = await ada.client.try.page_touch()
  return outcome.ok ? 'ok' : outcome.error.reason
}
const page_id = randomUUID()

describe('a notification of a consumer', () => {
  it.each([
    ['an account', () => bob.id],
    ['an actor', () => ({ actor_id: bob.actor_id })],
  ])('reaches the sockets of %s on every node, after the commit', async (_what, to) => {
    const sockets = [await listening(), await listening(other)]
    const arrived = Promise.all(sockets.map(({ next }) => next()))
    expect(await touch(({ notify }) => notify(to(), 'page_changed', { page_id }))).toBe('ok')
    expect(await arrived).toEqual([{ page_id }, { page_id }])
  })

  it('is sent as it was when it was given', async () => {
    const { next } = await listening()
    const arrived = next()
    await touch(({ notify }) => {
      const params = { page_id, by: 'ada' }
      notify(bob.id, 'page_changed', params)
      params.by = 'eve'
    })
    expect(await arrived).toEqual({ page_id, by: 'ada' })
  })

  it('is sent with its keys, whatever keys another one had', async () => {
    const sent: object[] = []
    const deaf = test.service.app.hub.listen((committed) => {
      for (const { params } of committed.notifications) sent.push(params)
    })
    const words = ['\\', '"', 'n'].map((key) => ({ words: { before: 1, [key]: 2 } }))
    for (const params of words) await touch(({ notify }) => notify(bob.id, 'page_words', params))
    deaf()
    expect(sent).toEqual(words)
  })

  it('never leaves when the transaction rolls back', async () => {
    const { heard, next } = await listening()
    for (const error of [new Error('unexpected'), undefined])
      expect(
        await touch(async ({ notify, db }) => {
          notify(bob.id, 'page_changed', { page_id: randomUUID() })
          notify({ actor_id: bob.actor_id }, 'page_changed', { page_id: randomUUID() })
          if (error) throw error
          await db.run(sql`select 1 / 0`)
        }),
      ).toBe('internal_error')
    const arrived = next()
    await touch(({ notify }) => notify(bob.id, 'page_changed', { page_id }))
    await arrived
    expect(heard).toEqual([{ page_id }])
  })

  it('to an actor that does not exist reaches nobody, and the rest is sent', async () => {
    work = ({ notify }) => {
      notify({ actor_id: randomUUID() }, 'page_changed', { page_id })
      notify(bob.id, 'page_changed', { page_id })
    }
    await scenario(test, () => ada.client.page_touch(), {
      notify: [{ method: 'page_changed', account_id: bob.id, params: { page_id } }],
    })
  })

  it('can be sent by a transaction of the library', async () => {
    const { next } = await listening()
    const arrived = next()
    await test.service.transaction({ event: 'cell_update', via: 'wiki' }, async ({ notify }) =>
      notify(bob.id, 'page_changed', { page_id }),
    )
    expect(await arrived).toEqual({ page_id })
  })

  it.each<[what: string, method: string, params: unknown, says: string]>([
    ['an unknown name', 'page_chnged', { page_id }, 'did you mean page_changed?'],
    ['a name of an object', 'toString', { page_id }, 'not declared in notifications'],
    ['a key too many', 'page_changed', { page_id, x: 1 }, 'the params do not fit: x unrecognized_keys'],
    ['a wrong value', 'page_changed', { page_id: 'secret' }, 'the params do not fit: page_id invalid_format'],
    ['no params', 'page_changed', undefined, 'the params must be an object'],
    ['too much', 'page_text', { text: 'x'.repeat(8182) }, '8193 bytes as JSON, of 8192 at most'],
  ])(
    'with %s is refused where it is sent, and the mutation is undone',
    async (_what, method, params, says) => {
      expect(await touch(({ notify }) => notify(bob.id, method as never, params as never))).toBe(
        'internal_error',
      )
      expect(captured.text()).toContain(says)
      expect(captured.text()).not.toContain('secret')
    },
  )

  it('is typed for the live client, with or without its module declaration', () => {
    type Own = { page_moved: { to: string } }
    expectTypeOf<LiveEvents['page_changed']>().toEqualTypeOf<{ page_id: string; by?: string | undefined }>()
    expectTypeOf<LiveEvents<Own>['page_moved']>().toEqualTypeOf<{ to: string }>()
    expectTypeOf<LiveEvents<Own>>().not.toHaveProperty('page_changed')
  })
})

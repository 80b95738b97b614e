import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, dataOf, type Reply, reasonOf, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type Who, who } from '../../test/helpers/who.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'
import { query } from './declare.ts'

const actions = {
  grain: who({ account: 'required', actor: 'none' }),
  loose: who({ account: 'optional', actor: 'none' }),
  open: who({ account: 'none', actor: 'none' }),
  acts: who({ account: 'required', actor: 'required' }),
  may_act: who({ account: 'optional', actor: 'optional' }),
  acts_if: who({ account: 'required', actor: 'optional' }),
  hears: query({
    doc: 'Answers the input that it gets.',
    auth: { account: 'required', actor: 'required' },
    input: z.strictObject({ n: z.int() }),
    output: z.array(z.unknown()),
    refine: (input) => [input],
    handler: async (refined) => refined,
  }),
}

const test = await serviceForFile({ actions })
const one = await test.account()
const two = await test.account()
const sibling = await test.actor(two.id, 'second')

const ask = (method: string, params?: unknown, account?: TestAccount): Promise<Reply> =>
  rpc(test.url, call(method, params), account ? { cookie: account.cookie } : {})
const result = ({ json }: Reply) => (json as { result?: z.output<typeof Who> }).result
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)

describe('the acting actor', () => {
  const axes = ['acts', 'may_act', 'acts_if']

  it.each(axes)('%s takes the only one, or the one named, in upper or lower case', async (method) => {
    for (const params of [{}, { acting: one.actor_id }, { acting: one.actor_id.toUpperCase() }])
      expect(result(await ask(method, params, one))?.actor).toBe(one.actor_id)
    for (const acting of [two.actor_id, sibling, sibling.toUpperCase()])
      expect(result(await ask(method, { acting }, two))?.actor).toBe(acting.toLowerCase())
  })

  it('is no part of the input of the method', async () => {
    const { json } = await ask('hears', { n: 1, acting: one.actor_id }, one)
    expect((json as { result: unknown }).result).toEqual([{ n: 1 }])
  })

  it.each(axes)('%s with several and none named lists the choice, oldest first', async (method) => {
    const available = [
      { id: two.actor_id, name: two.username },
      { id: sibling, name: 'second' },
    ]
    for (const params of [undefined, {}]) {
      const reply = await ask(method, params, two)
      expect([reply.status, dataOf(reply)]).toEqual([400, { reason: 'actor_required', available }])
    }
  })

  it.each(axes)('%s gives the same answer for a foreign, an unknown and a removed one', async (method) => {
    const account = await test.account()
    const removed = await test.actor(account.id, 'removed')
    await run(sql`update actor set deleted_at = now() where id = ${removed}`)
    const replies = await Promise.all(
      [one.actor_id, randomUUID(), removed, '11111111-1111-1111-1111-111111111111'].map((acting) =>
        ask(method, { acting }, account),
      ),
    )
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(replies[0]?.json).toMatchObject({
      error: { code: -32602, data: { reason: 'actor_not_on_account' } },
    })
    expect(dataOf(replies[0] as Reply)).toEqual({ reason: 'actor_not_on_account' })
    expect(result(await ask(method, {}, account))?.actor).toBe(account.actor_id)
  })

  const malformed: [acting: unknown, code: string][] = [
    [null, 'invalid_type'],
    [1, 'invalid_type'],
    [false, 'invalid_type'],
    [[], 'invalid_type'],
    [{}, 'invalid_type'],
    ['', 'invalid_format'],
    ['x', 'invalid_format'],
    ['\0', 'invalid_format'],
    ['\ud800', 'invalid_format'],
    [`${randomUUID()} `, 'invalid_format'],
    [randomUUID().replaceAll('-', ''), 'invalid_format'],
  ]
  it.each(malformed)('%j is never read as omitted', async (acting, code) => {
    for (const method of axes)
      for (const account of [one, two]) {
        const reply = await ask(method, { acting }, account)
        expect([method, reply.status, dataOf(reply)]).toEqual([
          method,
          400,
          { reason: 'invalid_params', issues: [{ path: ['acting'], code, message: expect.any(String) }] },
        ])
      }
    expect(reasonOf(await ask('may_act', { acting }))).toBe('invalid_params')
  })

  it.each(axes)('%s without a live one is refused', async (method) => {
    const account = await test.account()
    await run(sql`update actor set deleted_at = now() where account_id = ${account.id}`)
    const reply = await ask(method, {}, account)
    expect([reply.status, dataOf(reply)]).toEqual([403, { reason: 'no_actors_on_account' }])
    expect(reasonOf(await ask('grain', {}, account))).toBe('ok')
  })

  it('an optional axis has an empty context for anonymous callers', async () => {
    for (const params of [{}, { acting: one.actor_id }])
      expect(result(await ask('may_act', params))).toEqual({ account: null, actor: null, roles: [] })
    expect(result(await ask('loose'))).toEqual({ account: null, actor: null, roles: [] })
    expect(result(await ask('loose', {}, one))).toEqual({ account: one.id, actor: null, roles: [] })
  })

  it('account-grain methods resolve none and do not know the key', async () => {
    const account = await test.account({ roles: ['admin'] })
    await test.actor(account.id, 'second')
    expect(result(await ask('grain', {}, account))).toEqual({ account: account.id, actor: null, roles: [] })
    for (const method of ['grain', 'loose', 'open']) {
      const reply = await ask(method, { acting: account.actor_id }, account)
      expect(dataOf(reply)).toMatchObject({ issues: [{ path: ['acting'], code: 'unrecognized_keys' }] })
    }
    const rest = (path: string, method: string, body?: unknown, cookie = account.cookie) =>
      send(test.url, { path: `/api/account/${path}`, method, body, headers: { cookie } })
    expect((await rest('verify', 'GET')).status).toBe(200)
    expect((await rest('status', 'GET')).status).toBe(200)
    const passwords = { current_password: account.password, new_password: `${account.password}!` }
    expect((await rest('password', 'POST', passwords)).status).toBe(200)
    const later = await test.account()
    await test.actor(later.id, 'second')
    expect((await rest('logout', 'POST', undefined, later.cookie)).status).toBe(200)
  })

  it('is resolved anew by every call: a removed actor can no longer act', async () => {
    const account = await test.account()
    const second = await test.actor(account.id, 'second')
    expect(reasonOf(await ask('acts', { acting: second }, account))).toBe('ok')
    await run(sql`update actor set deleted_at = now() where id = ${second}`)
    expect(reasonOf(await ask('acts', { acting: second }, account))).toBe('actor_not_on_account')
    expect(result(await ask('acts', {}, account))?.actor).toBe(account.actor_id)
  })
})

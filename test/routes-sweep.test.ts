import { beforeEach, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import type { Route } from '../src/core/route.ts'
import { catalogue } from '../src/reasons.ts'
import { routes } from '../src/routes.ts'
import type { TestAccount } from '../src/testing/index.ts'
import { type Reply, send } from './helpers/http.ts'
import { mailIsDown } from './helpers/mailed.ts'
import { providerIsDown } from './helpers/oidc.ts'
import { onLocalhost } from './helpers/passkeys.ts'
import { serviceForFile } from './helpers/service.ts'
import { tokenPlace } from './helpers/token-place.ts'

/** Rules that hold for every REST route. A new route is tested as soon as it is in the table. */

const bootstrap_token_path = await tokenPlace()
let account: TestAccount
const test = await serviceForFile({
  ...mailIsDown,
  ...onLocalhost,
  ...providerIsDown,
  limit_ticket_ip: null,
  bootstrap: 'live',
  bootstrap_token_path,
  limit_login_ip: null,
  limit_bootstrap_ip: null,
})
beforeEach(async () => {
  account = await test.account()
})

const all = Object.entries(routes).map(([name, route]) => ({ name, ...(route as unknown as Route) }))
const guarded = all.filter(({ auth }) => auth.account === 'required')
const strict = all.filter(({ anyQuery }) => !anyQuery)
const taking = all.filter(({ input }) => input !== undefined)

it.each(all)('$name is called by the path of its name, as the client does', ({ name, path }) => {
  expect(path).toBe(`/${name}`)
})

const ask = (
  { path, method }: Pick<Route, 'path' | 'method'>,
  sent: { body?: unknown; query?: string; anonymous?: boolean } = {},
): Promise<Reply> =>
  send(test.url, {
    method,
    path: `/api/account${path}${sent.query ?? ''}`,
    body: sent.body,
    headers: sent.anonymous ? {} : { cookie: account.cookie },
  })

it.each(all)(
  '$name says what it is for, and lists reasons of the catalogue',
  ({ doc, path, errors, auth }) => {
    expect(doc).toMatch(/^[A-Z].{10,200}\.$/s)
    expect(path).toMatch(/^\/[a-z_]+(\/[a-z_]+)*$/)
    expect(Object.keys(auth)).toEqual(expect.arrayContaining(['account', 'actor']))
    for (const reason of errors ?? []) expect(catalogue).toHaveProperty(reason)
  },
)

it.each(guarded)('$name without a credential is 401, whatever comes with it', async (route) => {
  for (const sent of [{}, { body: 'not JSON' }, { body: { zz_unknown: 1 } }, { query: '?zz=1' }]) {
    const reply = await ask(route, { ...sent, anonymous: true })
    expect([reply.status, reply.json]).toEqual([401, { error: 'authentication_required' }])
  }
})

it.each(strict)('$name refuses a query key, before the body', async (route) => {
  for (const query of ['?x=1', '?x', '?=', '?acting=1', '?%00=1']) {
    const reply = await ask(route, { query, body: 'not JSON' })
    expect([reply.status, reply.json]).toMatchObject([
      400,
      { error: 'invalid_query_params', issues: [{ code: 'unrecognized_keys' }] },
    ])
  }
  expect((await ask(route, { query: '?' })).json).not.toMatchObject({ error: 'invalid_query_params' })
})

describe.each(taking)('the body of $name', (route) => {
  const keys = Object.keys((route.input as z.ZodObject).shape)

  it.each(['', ' ', '{', 'null', '1', '"x"', '[]', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`])(
    '%s is no JSON object',
    async (body) => {
      const reply = await ask(route, { body })
      expect([reply.status, reply.json]).toEqual([400, { error: 'invalid_json_body' }])
    },
  )

  it('takes no unknown keys, in any of its objects', async () => {
    for (const key of ['zz_unknown', '__proto__', 'constructor', 'toString']) {
      const { status, json } = await ask(route, { body: `{"${key}":{"polluted":1}}` })
      const { error, issues } = json as { error: string; issues: object[] }
      expect([key, status, error]).toEqual([key, 400, 'invalid_request_body'])
      expect(issues).toContainEqual({ path: [key], code: 'unrecognized_keys', message: expect.any(String) })
    }
    expect(Object.prototype).not.toHaveProperty('polluted')
  })

  it('takes no U+0000 and no lone surrogate, in values and keys', async () => {
    for (const bad of ['a\0b', 'a\ud800b', '\udc00'])
      for (const key of keys)
        for (const [value, path] of [
          [bad, [key]],
          [{ x: [bad] }, [key, 'x', 0]],
        ] as const) {
          const reply = await ask(route, { body: { [key]: value } })
          expect([reply.status, reply.json]).toEqual([
            400,
            {
              error: 'invalid_request_body',
              issues: [
                { path: [...path], code: 'invalid_format', message: expect.stringContaining('U+0000') },
              ],
            },
          ])
        }
    for (const key of ['\0', '\ud800']) expect((await ask(route, { body: { [key]: 1 } })).status).toBe(400)
  })

  it('takes null for the e-mail of a signup only', async () => {
    for (const key of keys) {
      const { issues } = (await ask(route, { body: { [key]: null } })).json as { issues: object[] }
      const refused = { path: [key], code: 'invalid_type', message: expect.any(String) }
      if (route.name === 'signup' && key === 'email') expect(issues).not.toContainEqual(refused)
      else expect([key, issues]).toEqual([key, expect.arrayContaining([refused])])
    }
  })

  it('of any type is refused and never echoed', async () => {
    const marker = 'marker-of-the-caller'
    for (const key of keys)
      for (const value of [null, true, 0, 1.5, [], {}, [marker], { x: marker }]) {
        const reply = await ask(route, { body: { [key]: value } })
        expect([key, reply.status]).toEqual([key, 400])
        expect(reply.text).not.toContain(marker)
      }
  })
})

import { afterAll, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { clientSecret, finish, start } from '../../test/helpers/oidc.ts'
import { realProvider } from '../../test/helpers/real-provider.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const redirect = 'http://127.0.0.1:4040/admin/callback'
const { issuer, browse, close } = await realProvider(`${redirect}/corp`)
afterAll(close)

const test = await serviceForFile({
  oidc_redirect_url: redirect,
  oidc: [
    {
      ...{ id: 'corp', issuer, client_id: 'cellkeep-test', client_secret: clientSecret },
      ...{ userinfo: true, on_unknown: 'signup', allowed_domains: ['corp.example'] },
    },
  ],
})
await test.service.operations.setSettings({ open_signup: true }, { via: 'test' })

it('signs people up and in, and proves them again', async () => {
  const first = await start(test)
  const made = await finish(test, { flow: first.flow, query: await browse(first.url, 'ada') })
  expect([made.status, made.json]).toEqual([200, { ok: true, created: true, linked: false }])
  const { json } = await send(test, 'GET /status', { cookie: made.cookie })
  expect(json).toMatchObject({
    account: { username: 'ada', email: 'ada@corp.example', email_verified: true },
    actor: { name: 'Name of ada' },
  })
  const second = await start(test)
  const known = await finish(test, { flow: second.flow, query: await browse(second.url, 'ada') })
  expect(known.json).toEqual({ ok: true, created: false, linked: false })
  const { cookie = '' } = known
  const again = await start(test, { intent: 'reauthenticate' }, { cookie })
  const renewed = await finish(test, { flow: again.flow, query: await browse(again.url, 'ada'), cookie })
  expect([renewed.status, renewed.json]).toEqual([200, { ok: true, created: false, linked: false }])
})

it('redeems no code twice, and none without the verifier of the flow', async () => {
  const first = await start(test)
  const query = await browse(first.url, 'grace')
  expect((await finish(test, { flow: first.flow, query })).status).toBe(200)
  const [mine, theirs] = [await start(test), await start(test)]
  for (const other of [query, await browse(theirs.url, 'grace')]) {
    const changed = new URLSearchParams(other)
    changed.set('state', new URL(mine.url).searchParams.get('state') as string)
    const { flow } = other === query ? mine : await start(test)
    expect((await finish(test, { flow, query: `${changed}` })).json).toEqual({ error: 'oidc_failed' })
  }
})

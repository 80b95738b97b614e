import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { clientSecret, finish, start } from '../../test/helpers/oidc.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

/** A provider that others have written and certified, as a process of its own. */
const redirect = 'http://127.0.0.1:4040/admin/callback'
const child: ChildProcess = spawn(process.execPath, ['test/helpers/oidc-provider.mjs', `${redirect}/corp`], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
afterAll(() => child.kill())
const [line] = await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
const issuer = String(line).trim()

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

/** Follows redirects and fills in the forms of the provider, until it leads back to the service. */
async function browse(url: string, login: string): Promise<string> {
  const cookies = new Map<string, string>()
  let next: { url: string; form?: URLSearchParams } = { url }
  for (let step = 0; step < 20; step++) {
    const response = await fetch(next.url, {
      method: next.form ? 'POST' : 'GET',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(next.form && { body: next.form }),
      redirect: 'manual',
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) as unknown as [string, string, string]
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location?.startsWith(redirect)) return new URL(location).search
    if (location) {
      next = { url: new URL(location, next.url).href }
      continue
    }
    const html = await response.text()
    const action = /<form[^>]* action="([^"]+)"/.exec(html)?.[1]
    const prompt = /name="prompt" value="([^"]+)"/.exec(html)?.[1]
    if (!action || !prompt) throw new Error(`no form in ${html}`)
    next = {
      url: new URL(action, next.url).href,
      form: new URLSearchParams({ prompt, login, password: 'any' }),
    }
  }
  throw new Error('the provider never leads back')
}

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

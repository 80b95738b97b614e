/**
 * Part of `npm run browser`: a page on http://localhost adds passkeys and signs in with them, by the authenticator that
 * Chromium has for tests.
 */
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { testService } from '../../src/testing/index.ts'

const password = 'a long password'

export async function passkeyStory(executablePath: string): Promise<void> {
  const site = await serveSite()
  const test = await testService({ public_url: site.origin, cookie_secure: false })
  site.forwardTo(test.url)
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const ada = await test.account({ username: 'ada', password })
    const { page, devtools } = await open(browser, site.origin)
    const phone = await addAuthenticator(devtools, 'internal')
    assert.equal((await post(page, 'login', { username: 'ada', password })).status, 200)
    assert.deepEqual(await register(page, {}), { first_factor: true, second_factor: false, codes: null })

    await post(page, 'logout', undefined)
    assert.equal(await signIn(page), 200)
    const { sessions } = await ada.client.account_session_list()
    const own = sessions.find(({ methods }) => methods.includes('passkey'))
    assert.deepEqual([own?.methods, own?.strong], [['passkey'], true])

    // Another device as second factor, which is asked for after the password.
    await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: phone })
    await addAuthenticator(devtools, 'usb')
    const stick = await register(page, { second_factor: true })
    assert.deepEqual(stick, { first_factor: true, second_factor: true, codes: 10 })
    await post(page, 'logout', undefined)
    const first = await post(page, 'login', { username: 'ada', password })
    assert.deepEqual([first.status, first.json.error], [401, 'second_factor_required'])
    assert.equal(await prove(page, first.json.passkey_options, 'second_factor', 'passkey'), 200)
    console.log('passkeys: passed')
  } finally {
    await browser.close()
    await test.close()
    site.close()
  }
}

async function open(browser: Browser, origin: string): Promise<{ page: Page; devtools: CDPSession }> {
  const page = await (await browser.newContext()).newPage()
  await page.goto(origin)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  return { page, devtools }
}

/** A device with user verification, which always succeeds. */
async function addAuthenticator(devtools: CDPSession, transport: 'internal' | 'usb') {
  const options = {
    protocol: 'ctap2',
    transport,
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  } as const
  return (await devtools.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Answer = { status: number; json: any }

/** Sent by the page, so that the browser adds origin and cookies. */
const post = (page: Page, route: string, body: unknown): Promise<Answer> =>
  page.evaluate(
    async ({ route, body }) => {
      const response = await fetch(`/api/account/${route}`, {
        method: 'POST',
        ...(body !== undefined && {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      })
      const text = await response.text()
      return { status: response.status, json: text === '' ? null : JSON.parse(text) }
    },
    { route, body },
  )

/** Adds a passkey as the documentation shows it. */
const register = (page: Page, input: { second_factor?: boolean }) =>
  page.evaluate(async (input) => {
    const call = async (method: string, params: object) => {
      const response = await fetch('/api/rpc', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const { result, error } = await response.json()
      if (error) throw new Error(`${method}: ${JSON.stringify(error)}`)
      return result
    }
    const { options } = await call('account_passkey_register_begin', input)
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
    const created = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
    const finished = await call('account_passkey_register_finish', { response: created.toJSON() })
    const { first_factor, second_factor } = finished.passkey
    return { first_factor, second_factor, codes: finished.recovery_codes?.length ?? null }
  }, input)

async function signIn(page: Page): Promise<number> {
  const { json } = await post(page, 'passkey_begin', {})
  return await prove(page, json.options, 'passkey_finish', 'response')
}

/** Answers a challenge with a passkey of the authenticator. */
async function prove(page: Page, options: object, route: string, key: string): Promise<number> {
  const response = await page.evaluate(async (options) => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as never)
    return ((await navigator.credentials.get({ publicKey })) as PublicKeyCredential).toJSON()
  }, options)
  return (await post(page, route, { [key]: response })).status
}

/** An empty page on http://localhost, with the service below /api. */
async function serveSite() {
  let target = ''
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith('/api/')) {
      outgoing.setHeader('content-type', 'text/html')
      outgoing.end('<!doctype html><title>Passkeys</title>')
      return
    }
    const { method = 'GET', headers } = incoming
    const forwarded = request(target + incoming.url, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(outgoing)
    })
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    forwardTo: (url: string) => {
      target = url
    },
    close: () => server.close(),
  }
}

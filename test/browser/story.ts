/**
 * `npm run browser`: two people in two browsers exchange an offer, use the role, and lose it while connected; an
 * admin in a third browser follows the audit log meanwhile, across a restart of the server.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { bootstrap, firstAccount, startServer, workspace } from '../helpers/server-process.ts'
import type { Seen } from './page.ts'
import { passkeyStory } from './passkeys.ts'

const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
const password = 'a long password'

if (existsSync(executablePath)) {
  await passkeyStory(executablePath)
  await story()
} else console.log(`There is no browser at ${executablePath}; name one with CELLKEEP_CHROMIUM. Not tested.`)

async function story(): Promise<void> {
  const space = await workspace()
  const site = await serveSite()
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const cwd = await space.make('story')
    await writeFile(
      join(cwd, 'cellkeep.config.mjs'),
      `export default { roles: [{ name: 'editor', grant_paths: ['admin'] }] }\n`,
    )
    const settings = {
      CELLKEEP_CORS: 'true',
      CELLKEEP_ALLOWED_ORIGINS: site.origin,
      CELLKEEP_COOKIE_SECURE: 'false',
    }
    const first = await startServer(cwd, settings)
    const port = new URL(first.url).port
    const open = async (): Promise<Page> => {
      const page = await (await browser.newContext()).newPage()
      await page.goto(site.origin)
      await page.evaluate((url) => void window.openPage(url), first.url)
      return page
    }
    const [admin, grace, bob] = [await open(), await open(), await open()]

    await bootstrap(first)
    await admin.evaluate((login) => window.page.client.account.login(login), firstAccount)
    for (const [page, username] of [
      [grace, 'grace'],
      [bob, 'bob'],
    ] as const) {
      await admin.evaluate((username) => window.page.client.invite_create({ username }), username)
      await page.evaluate((sent) => window.page.client.account.signup(sent), { username, password })
      await page.evaluate(() => void window.page.goLive())
      await saw(page, 'open')
    }
    await admin.evaluate(() => window.page.follow())
    const idOf = (page: Page) => page.evaluate(async () => (await window.page.client.account_verify()).id)
    const [graceId, bobId] = [await idOf(grace), await idOf(bob)]
    await admin.evaluate(
      (to_account_id) => window.page.client.role_grant_assign({ to_account_id, role: 'editor' }),
      graceId,
    )

    const cell_id = await grace.evaluate(async () => {
      const { cell } = await window.page.client.cell_create({ data: { label: 'Plan' } })
      const principal = { role: 'editor' }
      await window.page.client.cell_grant_create({ cell_id: cell.id, level: 'editor', principal })
      return cell.id
    })
    const readByBob = () =>
      bob.evaluate(async (id) => {
        const outcome = await window.page.live?.try.cell_get({ id })
        return outcome?.ok ? outcome.result.cell.data.label : outcome?.error.reason
      }, cell_id)
    assert.equal(await readByBob(), 'cell_not_found')

    await grace.evaluate(
      (to_account_id) =>
        window.page.live?.role_grant_offer_create({ to_account_id, role: 'editor', message: 'Join in' }),
      bobId,
    )
    const received = (await saw(bob, 'role_grant_offer_received')) as { offer: { offer_id: string } }

    assert.equal((await first.end('SIGTERM')).code, 0)
    const second = await startServer(cwd, { ...settings, CELLKEEP_PORT: port })
    for (const page of [grace, bob]) await saw(page, 'open', 2)

    const granted = await bob.evaluate(
      async (offer_id) => await window.page.live?.role_grant_offer_accept({ offer_id }),
      received.offer.offer_id,
    )
    await saw(grace, 'role_grant_offer_accepted')
    assert.equal(await readByBob(), 'Plan')

    await admin.evaluate(
      async ({ role_grant_id, bobId }) => {
        const { accounts } = await window.page.client.admin_account_list()
        const actor_id = accounts.find(({ account }) => account.id === bobId)?.actors[0]?.id ?? ''
        await window.page.client.role_grant_revoke({ actor_id, role_grant_id, reason: 'Done' })
      },
      { role_grant_id: granted?.role_grant_id ?? '', bobId },
    )
    assert.deepEqual(await saw(bob, 'role_grant_revoke'), {
      role_grant_id: granted?.role_grant_id,
      role: 'editor',
      scope_id: null,
      reason: 'Done',
    })
    assert.equal(await readByBob(), 'cell_not_found')

    await saw(admin, 'role_grant_revoke')
    const rows = await admin.evaluate(() => window.page.seen)
    assert.deepEqual(
      rows.map(({ event }) => event),
      [
        'role_grant_create',
        'cell_create',
        'cell_grant_create',
        'role_grant_offer_create',
        'role_grant_offer_accept',
        'role_grant_create',
        'role_grant_revoke',
      ],
      'the admin has seen each step once and in order',
    )
    const numbers = rows.map(({ params }) => (params as { seq: number }).seq)
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].sort((a, b) => a - b),
    )
    // The service refuses the socket of a guest. A browser does not tell why, but the client closes with the reason.
    const guest = await open()
    await guest.evaluate(() => void window.page.goLive())
    assert.equal(await saw(guest, 'closed'), 'signed_out')
    await guest.evaluate((login) => window.page.client.account.login(login), firstAccount)
    await guest.evaluate((acting) => void window.page.goLive({ acting }), graceId)
    assert.equal(await saw(guest, 'closed', 2), 'actor_not_on_account')
    await guest.evaluate(() => void window.page.goLiveWithToken('no token of a page counts'))
    await saw(guest, 'open')

    // While the service is down, a call fails with a `TransportError`.
    assert.equal((await second.end('SIGTERM')).code, 0)
    const failure = await guest.evaluate(async () => {
      const outcome = await window.page.client.try.cell_list()
      return outcome.ok ? outcome : [outcome.error.name, outcome.error.status]
    })
    assert.deepEqual(failure, ['TransportError', 0])
    console.log('1 passed, 0 failed')
  } finally {
    await browser.close()
    site.close()
    await space.remove()
  }
}

/** Waits for the nth event of this name that a page has seen. */
async function saw(page: Page, event: string, nth = 1): Promise<unknown> {
  const found = await page.waitForFunction(
    ({ event, nth }) => window.page.seen.filter((one: Seen) => one.event === event)[nth - 1],
    { event, nth },
    { timeout: 30_000 },
  )
  return ((await found.jsonValue()) as Seen).params
}

/** An application on another origin, which loads the bundled client. */
async function serveSite(): Promise<{ origin: string; close(): void }> {
  const input = fileURLToPath(new URL('page.ts', import.meta.url))
  const { output } = await (await rolldown({ input, platform: 'browser' })).generate({ format: 'iife' })
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript ? output[0].code : '<!doctype html><title>Story</title><script src="/page.js"></script>',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close() }
}

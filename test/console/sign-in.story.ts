import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { createLog } from '../../src/log/log.ts'
import { codeOf, guarded, wrongCode } from '../helpers/totp.ts'
import { check, consoleService, look, person } from './browser.ts'

it('asks for the second factor: a code of the authenticator, or one that was kept', async () => {
  await using test = await consoleService()
  const ada = await guarded(test, { username: 'ada' })
  const page = await person(test)
  await page.goto('/sign-in')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await page.getByLabel('Authenticator code').fill(wrongCode(ada.secret))
  await page.keyboard.press('Enter')
  await page.getByText('This code is wrong').waitFor()
  await look(page, 'second-step')
  await page.getByRole('button', { name: 'Use a recovery code' }).click()
  await page.getByLabel('Recovery code').fill(ada.recovery_codes[0] ?? '')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/admin')
  expect(codeOf(ada.secret)).toMatch(/^\d{6}$/)
})

it('a link of a message says what it is for, and only the button uses it up', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const { link } = await ada.client.admin_account_reset_link_create({ account_id: grace.id, reveal: true })
  const ticket = new URL(link ?? '', test.url).hash
  const page = await person(test)
  const referers: (string | undefined)[] = []
  page.on('request', (request) => referers.push(request.headers().referer))
  await page.goto(`/admin/link${ticket}`)
  await page.getByText('For the account grace.').waitFor()
  expect(page.url()).toBe(`${test.url}/admin/link`)
  expect(referers.filter((one) => one?.includes('/admin/link'))).toEqual([])
  await page.getByLabel('New password', { exact: true }).fill('another long password')
  await look(page, 'link-reset')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await test.client().account.login({ username: 'grace', password: 'another long password' })
  await page.goto('about:blank')
  await page.goto(`/admin/link${ticket}`)
  await page.getByText('This link was used').waitFor()
  await check(page, 'link used')
})

it('asks for fresh proof if a call needs it, and then makes the call', async () => {
  await using test = await consoleService({ step_up: 'all' })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`update auth_session set authenticated_at = now() - interval '2 days'`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/tokens?dialog=token')
  await page.getByLabel('Name').fill('deploy-bot')
  await page.getByLabel('Everything').check()
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  await look(page, 'step-up')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'deploy-bot is ready' }).waitFor()
  expect((await test.client().try.account_verify()).ok).toBe(false)
})

it('no secret gets into an address, a title, storage, the console, a Referer or the log of the server', async () => {
  const told: string[] = []
  const tell = (text: string | undefined): void => void told.push(text ?? '')
  const log = createLog('debug', { write: tell })
  await using test = await consoleService({ log })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const listen = (page: Page): Page => {
    page.on('request', (request) => {
      tell(request.url())
      tell(request.headers().referer)
    })
    page.on('console', (message) => tell(message.text()))
    page.on('framenavigated', (frame) => tell(frame.url()))
    return page
  }
  const keep = async (page: Page): Promise<void> =>
    tell(
      await page.evaluate(() =>
        JSON.stringify([
          { ...localStorage },
          { ...sessionStorage },
          history.state,
          document.title,
          location.href,
        ]),
      ),
    )
  const secrets = { wrong: 'not the long password', password: ada.password, changed: 'another long password' }
  const page = listen(await person(test))
  await page.goto('/sign-in')
  await page.getByLabel('Username or e-mail').fill('ada')
  for (const [password, then] of [
    [secrets.wrong, page.getByText('Name or password is wrong.')],
    [secrets.password, page.getByRole('heading', { name: 'Home' })],
  ] as const) {
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await then.waitFor()
  }
  await keep(page)
  await page.goto('/admin/me/tokens?dialog=token')
  await page.getByLabel('Name').fill('deploy-bot')
  await page.getByRole('button', { name: 'Create token' }).click()
  const token = await page.locator('.secret code').innerText()
  await keep(page)
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.goto(`/admin/people/${grace.id}/sign_in?dialog=reset`)
  await page.getByRole('button', { name: 'Create a reset link' }).click()
  await page.getByLabel('Show it to me').check()
  await page.getByRole('dialog').getByRole('button', { name: 'Create a reset link' }).click()
  const link = await page.locator('.secret code').innerText()
  const ticket = new URLSearchParams(new URL(link).hash.slice(1)).get('ticket') ?? ''
  await keep(page)

  const hers = await person(test)
  await hers.goto(`/admin/link${new URL(link).hash}`)
  await hers.getByText('For the account grace.').waitFor()
  listen(hers)
  await hers.getByLabel('New password', { exact: true }).fill(secrets.changed)
  await hers.getByRole('button', { name: 'Set password' }).click()
  await hers.getByRole('heading', { name: 'Sign in' }).waitFor()
  await hers.getByLabel('Username or e-mail').fill('grace')
  await hers.getByLabel('Password', { exact: true }).fill(secrets.changed)
  await hers.keyboard.press('Enter')
  await hers.getByRole('heading', { name: 'Home' }).waitFor()
  await keep(hers)
  const cookies = [...(await page.context().cookies()), ...(await hers.context().cookies())]
  const hidden = {
    ...secrets,
    token,
    ticket,
    ...Object.fromEntries(cookies.map(({ value }, n) => [`cookie ${n}`, value])),
  }
  // The log has recorded all of it.
  expect(told.filter((line) => line.includes('/api/account/login')).length).toBeGreaterThan(3)
  expect(Object.values(hidden).every((secret) => secret.length > 10)).toBe(true)
  const found = Object.entries(hidden).filter(([, secret]) => told.some((line) => line.includes(secret)))
  expect(found).toEqual([])
})

it('what is on screen stays while the server cannot say who is signed in', async () => {
  await using test = await consoleService()
  const long = 'a long enough password'
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const bob = await test.account({ username: 'bob', roles: ['admin'] })
  const page = await person(test, bob.cookie)
  await page.goto('/admin/me')
  await page.getByRole('button', { name: 'Change password' }).click()
  await page.getByLabel('New password', { exact: true }).fill(long)
  let asked = 0
  await page.route('**/api/account/status**', (route) =>
    asked++ === 0
      ? route.fulfill({ status: 503, json: { error: 'service_unavailable', request_id: randomUUID() } })
      : route.continue(),
  )
  const { actors } = await ada.client.admin_account_get({ account_id: bob.id })
  const [grant] = actors[0]?.role_grants ?? []
  await ada.client.role_grant_revoke({ actor_id: bob.actor_id, role_grant_id: grant?.id ?? '' })
  await page.getByText('The database cannot be reached right now').waitFor()
  expect(await page.getByLabel('New password', { exact: true }).inputValue()).toBe(long)
  // The page asks again once the service answers.
  await page.locator('nav > a[title=People]').waitFor({ state: 'detached' })
  expect(await page.getByLabel('New password', { exact: true }).inputValue()).toBe(long)
  // After a sign-out in another tab, nothing stays on screen.
  await page.route('**/api/account/status**', (route) => route.abort())
  await page.evaluate(() => new BroadcastChannel('cellkeep').postMessage('signed_out'))
  await page.getByRole('heading', { name: 'You were signed out' }).waitFor()
  expect(await page.getByLabel('New password', { exact: true }).count()).toBe(0)
})

it('an answer that comes after signing out signs nobody in', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me')
  await page.getByRole('heading', { name: 'My account' }).waitFor()
  const late = Promise.withResolvers<void>()
  let asked = 0
  await page.route('**/api/account/status**', async (route) => {
    if (asked++ > 0) return route.continue()
    const response = await route.fetch()
    await late.promise
    await route.fulfill({ response })
  })
  await page.evaluate(() => new BroadcastChannel('cellkeep').postMessage('signed_out'))
  await expect.poll(() => asked).toBe(1)
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  const answered = page.waitForResponse('**/api/account/status**')
  late.resolve()
  await (await answered).finished()
  await page.evaluate(() => new Promise((done) => setTimeout(done, 200)))
  expect(await page.getByRole('heading').allInnerTexts()).toEqual(['Sign in'])
})

it('says that the browser has kept no session, as over plain http, on the pages and on the console', async () => {
  await using test = await consoleService({
    cookie_secure: true,
    allowed_origins: ['http://insecure.test:*', 'http://127.0.0.1:*'],
  })
  const ada = await test.account({ username: 'ada' })
  const visits = `http://insecure.test:${new URL(test.url).port}`
  const page = await person(test, undefined, { visits, expects: /Cross-Origin-Opener-Policy/ })
  for (const path of ['/sign-in', '/admin']) {
    await page.goto(visits + path)
    await page.getByLabel('Username or e-mail').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill(ada.password)
    await page.keyboard.press('Enter')
    await page.getByText('Open this page over HTTPS').waitFor()
    await look(page, `sign-in-unkept${path.replace('/', '-')}`)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByLabel('Username or e-mail').waitFor()
  }
})

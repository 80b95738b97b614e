import { randomUUID } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'
import { codeOf, guarded, wrongCode } from '../helpers/totp.ts'
import { check, consoleForFile, consoleService, person } from './browser.ts'
import { serviceOnLocalhost } from './passkeys.ts'

const test = await consoleForFile({ deliver: () => {} })
const long = 'a long enough password'

/** The fragment of a link that sets a new password. */
async function ticketFor(test: TestService, username: string): Promise<string> {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const { id } = await test.account({ username })
  const { link } = await ada.client.admin_account_reset_link_create({ account_id: id, reveal: true })
  return new URL(link ?? '', test.url).hash
}

const tryPassword = async (page: Page, username: string, password: string): Promise<void> => {
  await page.getByLabel('Username or e-mail').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.keyboard.press('Enter')
}

it('asks for passwords as long as this server wants them', async () => {
  await using strict = await consoleService({ password_min: 16 })
  const page = await person(strict)
  await page.goto('/sign-up')
  await page.getByText('16 or more characters.').waitFor()
  await page.getByLabel('Username').fill('grace')
  await page.getByLabel('Password', { exact: true }).fill('fifteen letters')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByText('Use 16 or more characters.').waitFor()
})

it('takes an e-mail as it is typed, so that one can sign in with it', async () => {
  await test.service.operations.setSettings({ open_signup: true }, { via: 'cli' })
  const page = await person(test)
  await page.goto('/sign-up')
  await page.getByLabel('Username').fill('ada')
  await page.getByLabel('E-mail').pressSequentially(' ada@bücher.example ')
  await page.getByLabel('Password', { exact: true }).fill(long)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForURL('**/admin')
  await test.client().account.login({ username: 'ada@bücher.example', password: long })
})

it('says what is missing from a form that has one field', async () => {
  const ada = await guarded(test, { username: 'ada' })
  const page = await person(test)
  await page.goto('/sign-in')
  await page.getByRole('button', { name: 'Forgot your password?' }).click()
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByText('Enter your username.').waitFor()
  await check(page, 'nobody to send a link to')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await tryPassword(page, 'ada', ada.password)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('Enter the code.').waitFor()
  await page.getByRole('button', { name: 'Use a recovery code' }).click()
  await page.getByLabel('Recovery code').waitFor()
  expect(await page.getByText('Enter the code.').count()).toBe(0)
})

it('says that there are no passkeys over plain http', async () => {
  const local = await serviceOnLocalhost({ allowed_origins: ['http://insecure.test:*'] })
  const { id, password } = await local.account({ username: 'ada' })
  await local.service.app.db.run(sql`
    insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor,
      second_factor, rp_id, name)
    values ('key', ${id}::uuid, ${Buffer.from('key')}, 0, 'single', false, true, true, 'localhost', 'Key')`)
  const visits = `http://insecure.test:${new URL(local.url).port}`
  const page = await person(local, undefined, { visits, expects: /Cross-Origin-Opener-Policy/ })
  await page.goto(`${visits}/sign-in`)
  await tryPassword(page, 'ada', password)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByText('Passkeys do not work at this address').waitFor()
})

it('starts over if the second step has ended', async () => {
  const ada = await guarded(test, { username: 'ada' })
  const page = await person(test)
  await page.goto('/sign-in')
  await tryPassword(page, 'ada', ada.password)
  for (let attempt = 0; attempt < 6; attempt++) {
    await page.getByLabel('Authenticator code').fill(wrongCode(ada.secret))
    await page.keyboard.press('Enter')
    await page.getByText(attempt < 5 ? 'This code is wrong' : 'This took too long').waitFor()
  }
  await check(page, 'second step ended')
  await page.getByRole('button', { name: 'Start over' }).click()
  await tryPassword(page, 'ada', ada.password)
  await page.getByLabel('Authenticator code').fill(codeOf(ada.secret))
  await page.keyboard.press('Enter')
  await page.waitForURL('**/admin')
})

it('a link works after another one was opened, and its token leaves the address', async () => {
  const ticket = await ticketFor(test, 'grace')
  const page = await person(test)
  await page.goto('/admin/link#ticket=no')
  await page.getByText('This link was used').waitFor()
  await page.evaluate((hash) => location.assign(hash), ticket)
  await page.getByText('For the account grace.').waitFor()
  expect(page.url()).toBe(`${test.url}/admin/link`)
})

it('a link is asked about again after a failure, and opened again after a reload', async () => {
  const ticket = await ticketFor(test, 'grace')
  const page = await person(test)
  let asked = 0
  await page.route('**/api/account/ticket', (route) =>
    asked++ === 0
      ? route.fulfill({ status: 503, json: { error: 'service_unavailable', request_id: randomUUID() } })
      : route.continue(),
  )
  await page.goto(`/admin/link${ticket}`)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('For the account grace.').waitFor()
  await page.reload()
  await page.getByText('Open the link in the message again').waitFor()
  expect(asked).toBe(2)
  await check(page, 'link reloaded')
})

it('says that signing out has failed, and nobody is left signed in by mistake', async () => {
  const { cookie } = await test.account({ username: 'ada' })
  const page = await person(test, cookie)
  await page.goto('/admin')
  await page.route('**/api/account/logout', (route) => route.abort())
  const signOut = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
  }
  await signOut()
  await page.getByText('The server did not answer').waitFor()
  await page.unroute('**/api/account/logout')
  await signOut()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

it('loads once the server can say again who is signed in', async () => {
  const { cookie } = await test.account({ username: 'ada' })
  const page = await person(test, cookie)
  let asked = 0
  await page.route('**/api/account/status**', (route) =>
    asked++ === 0
      ? route.fulfill({ status: 503, json: { error: 'service_unavailable', request_id: randomUUID() } })
      : route.continue(),
  )
  await page.goto('/admin')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
})

it('a person who has signed up goes on once the server can say who that is', async () => {
  await test.service.operations.setSettings({ open_signup: true }, { via: 'cli' })
  const page = await person(test)
  await page.goto('/sign-up')
  await page.getByLabel('Username').fill('grace')
  await page.getByLabel('Password', { exact: true }).fill(long)
  await page.route('**/api/account/status**', (route) => route.abort(), { times: 1 })
  await page.keyboard.press('Enter')
  // Nothing was changed by asking, so there is nothing to check.
  await page.getByRole('alert').getByText('The server did not answer.', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.waitForURL('**/admin')
  await page.getByRole('button', { name: 'grace Account and theme' }).waitFor()
})

it('a person without a password sets the first one, with none to prove', async () => {
  const ada = await test.account({ username: 'ada' })
  await test.service.app.db.run(sql`update account set password_hash = '*' where id = ${ada.id}::uuid`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me')
  await page.getByRole('button', { name: 'Set a password' }).click()
  await page.getByLabel('New password', { exact: true }).fill(long)
  expect(await page.getByLabel('Current password', { exact: true }).count()).toBe(0)
  await check(page, 'first password')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await tryPassword(page, 'ada', long)
  await page.getByRole('button', { name: 'Change password' }).waitFor()
})

it('if invites are claimed by link, the link is mailed or shown once, and can be made anew', async () => {
  const admin = await test.account({ username: 'root', roles: ['admin'] })
  const page = await person(test, admin.cookie)
  await page.goto('/admin/invites?dialog=invite')
  await page.getByLabel('E-mail').fill('grace@example.com')
  await page.getByRole('button', { name: 'Create invite' }).click()
  await page.getByText('A link is on its way to grace@example.com.').waitFor()
  await expect.poll(() => test.messages).toMatchObject([{ purpose: 'invite', to: 'grace@example.com' }])

  const shown = async (): Promise<string> => {
    const link = await page.locator('.secret code').innerText()
    await check(page, 'link of an invite')
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    return link
  }
  await page.goto('/admin/invites?dialog=invite')
  await page.getByLabel('Username').fill('bob')
  await page.getByRole('button', { name: 'Create invite' }).click()
  const first = await shown()
  await check(page, 'invites by link')
  await page.getByRole('row').filter({ hasText: 'bob' }).getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Create a new link' }).click()
  const second = await shown()
  expect(second).not.toBe(first)
  await page
    .getByRole('row')
    .filter({ hasText: 'grace' })
    .getByRole('button', { name: 'More actions' })
    .click()
  await page.getByRole('menuitem', { name: 'Send again' }).click()
  await expect.poll(() => test.messages.length).toBe(2)

  const bob = await person(test)
  await bob.goto(`/admin/link${new URL(second).hash}`)
  await expect.poll(() => bob.getByLabel('Username').inputValue()).toBe('bob')
  await bob.getByLabel('Password', { exact: true }).fill(long)
  await bob.getByRole('button', { name: 'Create account' }).click()
  await bob.waitForURL('**/admin')
})

it('the next person to sign in is not asked for proof for what another has begun', async () => {
  const ada = await test.account({ username: 'ada' })
  const bob = await test.account({ username: 'bob' })
  await test.service.app.db.run(sql`
    update auth_session set authenticated_at = now() - interval '2 days' where account_id = ${ada.id}::uuid`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/security')
  await page.getByRole('button', { name: 'Add an authenticator' }).click()
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  const tab = await page.context().newPage()
  await tab.goto('/admin')
  await tab.getByRole('button', { name: 'Account' }).click()
  await tab.getByRole('menuitem', { name: 'Sign out' }).click()
  await tryPassword(page, 'bob', bob.password)
  await page.getByRole('button', { name: 'Add an authenticator' }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
})

it('says that a session could not be ended, nor a cell be made private', async () => {
  const ada = await test.account({ username: 'ada' })
  await test.client().account.login({ username: 'ada', password: ada.password })
  const { cell } = await ada.client.cell_create({ data: {}, visibility: 'public' })
  const page = await person(test, ada.cookie)
  const failed = page.getByRole('status').getByText('The server did not answer')
  const isRefused = async (button: Locator): Promise<void> => {
    await button.waitFor()
    await page.route('**/api/rpc', (route) => route.abort())
    await button.click()
    await failed.waitFor()
    await failed.waitFor({ state: 'hidden' })
    await page.unroute('**/api/rpc')
  }
  await page.goto('/admin/me/sessions')
  await isRefused(page.getByRole('button', { name: 'End the others' }))
  await isRefused(page.getByRole('button', { name: /^End [0-9a-f]{4}/ }))
  await page.goto(`/admin/cells/${cell.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await isRefused(page.getByRole('menuitem', { name: 'Make private' }))
})

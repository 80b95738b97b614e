import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { codeOf, guarded, wrongCode } from '../helpers/totp.ts'
import { check, consoleService, look, person } from './browser.ts'
import { hasFocus, press } from './keys.ts'
import { addDevice, serviceOnLocalhost } from './passkeys.ts'

const banner = 'One of your roles requires a second factor. Until you add one'

async function storeCodes(page: Page): Promise<string[]> {
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
  const codes = (await page.locator('.secret code').innerText()).split('\n')
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('10 codes left').waitFor()
  return codes
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
}

it('an admin who is required to adds an authenticator, and signs in with its code', async () => {
  await using test = await consoleService({ require_second_factor: ['admin'] })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`update auth_session set authenticated_at = now() - interval '2 days'`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/people')
  await page.getByText(banner).waitFor()
  await page.getByRole('link', { name: 'Add one' }).click()
  await page.getByText('missing, and required').waitFor()
  await look(page, 'security-required')

  await page.getByRole('button', { name: 'Add an authenticator' }).click()
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('img', { name: 'QR code of the secret' }).waitFor()
  await look(page, 'totp-add')
  const shown = await page.locator('.secret code').innerText()
  expect(shown).toMatch(/^([A-Z2-7]{4} ){7}[A-Z2-7]{4}$/)
  const secret = shown.replaceAll(' ', '')
  const link = await page.getByRole('link', { name: 'Open the app' }).getAttribute('href')
  expect(link).toContain(`secret=${secret}`)
  await page.getByLabel('Code shown by the app').fill(wrongCode(secret))
  await page.keyboard.press('Enter')
  await page.getByText('The authenticator shows another code now').waitFor()
  await page.getByLabel('Code shown by the app').fill(codeOf(secret))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
  await look(page, 'recovery-codes')
  const codes = await storeCodes(page)
  expect(new Set(codes).size).toBe(10)
  await expect.poll(() => page.getByText(banner).count()).toBe(0)
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.body.innerHTML]),
  )
  for (const one of [secret, shown, ...codes]) expect(kept).not.toContain(one)

  await signOut(page)
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  // The next code, as the current one may have been used above.
  await page.getByLabel('Authenticator code').fill(codeOf(secret, 1))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'My account' }).waitFor()
  await page.getByText('password, authenticator').waitFor()

  await page.getByRole('button', { name: 'Create new codes' }).click()
  await check(page, 'new recovery codes')
  await page.getByRole('dialog').getByRole('button', { name: 'Create new codes' }).click()
  for (const code of await storeCodes(page)) expect(codes).not.toContain(code)
  await page.getByRole('button', { name: 'Remove the authenticator' }).click()
  await look(page, 'totp-remove')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Remove the authenticator' }).click()
  await dialog.getByText('One of your roles requires a second factor. Add another').waitFor()
})

it('a passkey is added with its name, renamed, removed and used, by keys alone', async () => {
  const test = await serviceOnLocalhost()
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await addDevice(page)
  await page.goto('/admin/me/security')
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const dialog = page.getByRole('dialog')
  const add = button('Add a passkey').first()
  await press(add)
  await hasFocus(dialog.getByLabel('Name'))
  await page.keyboard.type('phone')
  await press(dialog.getByLabel('Also ask for it after the password'), 'Space')
  await look(page, 'passkey-add')
  await press(dialog.getByRole('button', { name: 'Add a passkey' }))
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
  await hasFocus(button('Copy'))
  await press(page.getByLabel('I have stored it'), 'Space')
  await press(button('Done'))
  await page.getByRole('row', { name: 'phone signs in second factor' }).waitFor()
  await hasFocus(add)
  await look(page, 'security-passkeys')
  const { passkeys } = await ada.client.account_sign_in_get()
  expect(passkeys).toMatchObject([{ name: 'phone', first_factor: true, second_factor: true }])

  await press(add)
  await page.keyboard.type('the same phone')
  await page.keyboard.press('Enter')
  await dialog.getByText('No passkey was added').waitFor()
  page.once('dialog', (question) => question.accept())
  await page.keyboard.press('Escape')
  await hasFocus(add)

  await press(button('Rename phone'))
  await check(page, 'passkey renamed')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('work phone')
  await page.keyboard.press('Enter')
  await hasFocus(button('Rename work phone'))

  // Without cookies, as in another browser: only the device and its user verification are asked.
  const user = await page.context().cookies()
  await page.context().clearCookies()
  await page.goto('/sign-in')
  await press(button('Sign in with a passkey'))
  await page.waitForURL('**/admin')
  await page.context().clearCookies()
  await page.context().addCookies(user)
  await page.goto('/admin/me/security')
  await press(button('Remove work phone'))
  await hasFocus(button('Cancel'))
  await check(page, 'passkey removed')
  await press(dialog.getByRole('button', { name: 'Remove', exact: true }))
  await expect.poll(() => page.getByRole('row').count()).toBe(0)
  // The button and its row are gone, so the heading gets the focus.
  await hasFocus(page.getByRole('heading', { name: 'My account' }))
  expect((await ada.client.account_sign_in_get()).recovery_codes_left).toBe(0)
})

it('an admin helps somebody in: a link for a new password, second factors removed', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await guarded(test, { username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/people/${grace.id}/sign_in`)
  await page.getByText('No open links').waitFor()
  await page.getByRole('button', { name: 'Create a reset link' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Show it to me').check()
  await look(page, 'person-reset-link')
  await dialog.getByRole('button', { name: 'Create a reset link' }).click()
  await page.getByRole('heading', { name: 'The link is ready' }).waitFor()
  await check(page, 'reset link')
  const { hash } = new URL(await page.locator('.secret code').innerText())
  const token = new URLSearchParams(hash.slice(1)).get('ticket') ?? ''
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('row', { name: 'a new password by an admin' }).waitFor()
  await look(page, 'person-sign-in')
  const stateOf = () =>
    test
      .client()
      .account.ticket({ token })
      .then(
        ({ username }) => username,
        ({ reason }) => reason,
      )
  expect(await stateOf()).toBe('grace')
  await page.getByRole('button', { name: 'Revoke a new password' }).click()
  await page.getByText('No open links').waitFor()
  expect(await stateOf()).toBe('ticket_not_found')

  await page.getByRole('button', { name: 'Remove second factors' }).click()
  await check(page, 'second factors of somebody removed')
  await dialog.getByRole('button', { name: 'Remove second factors' }).click()
  await expect.poll(() => page.getByRole('button', { name: 'Remove second factors' }).count()).toBe(0)
  await test.client().account.login({ username: 'grace', password: grace.password })
  await page.goto(`/admin/people/${ada.id}/sign_in`)
  await page.getByRole('button', { name: 'Create a reset link' }).click({ force: true })
  await page
    .getByText('only the server’s operator can change how they sign in')
    .waitFor({ state: 'attached' })
  expect(await dialog.count()).toBe(0)
})

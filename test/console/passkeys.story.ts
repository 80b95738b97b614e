import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { look, person } from './browser.ts'
import { addDevice, serviceOnLocalhost } from './passkeys.ts'

/** Adds a passkey to the signed-in account with the browser's own functions. */
const register = (page: Page, input: { second_factor: boolean }) =>
  page.evaluate(async (input) => {
    const call = async (method: string, params: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      const headers = { 'content-type': 'application/json' }
      const response = await fetch('/api/rpc', { method: 'POST', headers, body })
      return (await response.json()).result
    }
    const { options } = await call('account_passkey_register_begin', input)
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
    const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
    return await call('account_passkey_register_finish', { response: made.toJSON() })
  }, input)

it('signs in with a passkey, and asks for one after the password', async () => {
  const test = await serviceOnLocalhost()
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  const device = await addDevice(page)
  await page.goto('/admin')
  expect(await register(page, { second_factor: true })).toMatchObject({
    passkey: { first_factor: true, second_factor: true },
  })
  await page.context().clearCookies()
  await page.goto('/sign-in')
  const byPasskey = page.getByRole('button', { name: 'Sign in with a passkey' })
  await byPasskey.waitFor()
  await look(page, 'sign-in-passkey')

  // The device does not recognise its user: the browser has said so, and the page stays as it was.
  await device.isUser(false)
  const begun = page.waitForResponse('**/passkey_begin')
  await byPasskey.click()
  await begun
  await expect.poll(() => byPasskey.getAttribute('aria-busy')).toBe(null)
  await device.isUser(true)
  await byPasskey.click()
  await page.waitForURL('**/admin')
  const methods = async () => {
    const { sessions } = await ada.client.account_session_list()
    return sessions.map((one) => one.methods)
  }
  expect(await methods()).toContainEqual(['passkey'])

  await page.context().clearCookies()
  await page.goto('/sign-in')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Use a passkey' }).waitFor()
  await look(page, 'second-step-passkey')
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.waitForURL('**/admin')
  expect(await methods()).toContainEqual(['password', 'passkey'])
})

it('says when the account of a passkey is gone', async () => {
  const test = await serviceOnLocalhost()
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await addDevice(page)
  await page.goto('/admin')
  await register(page, { second_factor: false })
  await ada.client.account_delete()
  await page.context().clearCookies()
  await page.goto('/sign-in')
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('This passkey was not accepted').waitFor()
})

it('reauthenticates with a passkey if there is no password', async () => {
  const test = await serviceOnLocalhost({ step_up: 'all' })
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await addDevice(page)
  await page.goto('/admin')
  await register(page, { second_factor: false })
  const { db } = test.service.app
  await db.run(sql`update account set password_hash = '*'`)
  await db.run(sql`update auth_session set authenticated_at = now() - interval '2 days'`)
  await page.goto('/admin/me/tokens?dialog=token')
  await page.getByLabel('Name').fill('deploy-bot')
  await page.getByLabel('Everything').check()
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  const dialog = page.getByRole('dialog').filter({ hasText: 'Confirm that it is you' })
  await dialog.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
  expect(await dialog.getByLabel('Password', { exact: true }).count()).toBe(0)
  await look(page, 'step-up-passkey')
  await dialog.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByRole('heading', { name: 'deploy-bot is ready' }).waitFor()
})

it('says that passkeys belong to another address of the server', async () => {
  const test = await serviceOnLocalhost()
  const url = test.url.replace('localhost', '127.0.0.1')
  const page = await person({ ...test, url })
  await addDevice(page)
  await page.goto('/sign-in')
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('Passkeys do not work at this address').waitFor()
})

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { codeOf } from '../helpers/totp.ts'
import { consoleForFile, person } from './browser.ts'
import { holdBack } from './hold-back.ts'
import { hasFocus } from './keys.ts'

const test = await consoleForFile({ invite_claim: 'code' })

/** The dialog that asks for the secret has been sent and closed; the answer comes on another page. */
async function shownLate(page: Page, letGo: (refusal: undefined) => void, title: string): Promise<string> {
  await page.keyboard.press('Escape')
  await expect.poll(() => page.locator('dialog[open]').count()).toBe(0)
  await page.getByRole('link', { name: 'Cells' }).first().click()
  await page.getByRole('heading', { name: 'Cells' }).waitFor()
  letGo(undefined)
  await page.getByRole('heading', { name: title }).waitFor()
  return page.locator('.secret code').innerText()
}
async function store(page: Page): Promise<void> {
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await expect.poll(() => page.locator('dialog').count()).toBe(0)
}

it('a token is shown even if its dialog is closed before it is made', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/tokens?dialog=token')
  const { letGo } = await holdBack(page, 'account_token_create')
  await page.getByLabel('Name').fill('deploy-bot')
  await page.getByRole('button', { name: 'Create token' }).click()
  expect(await shownLate(page, letGo, 'deploy-bot is ready')).toMatch(/^secret_svc_token_/)
  await store(page)
  expect(new URL(page.url()).pathname).toBe('/admin/cells')
})

it('so are the links of an invite and of a reset', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/invites?dialog=invite')
  const invite = await holdBack(page, 'invite_create')
  await page.getByRole('dialog').getByLabel('Username').fill('bob')
  await page.getByRole('button', { name: 'Create invite' }).click()
  expect(await shownLate(page, invite.letGo, 'The link of the invite is ready')).toContain('#ticket=')
  await store(page)

  await page.goto(`/admin/people/${grace.id}/sign_in`)
  const reset = await holdBack(page, 'admin_account_reset_link_create')
  await page.getByRole('button', { name: 'Create a reset link' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Create a reset link' }).click()
  expect(await shownLate(page, reset.letGo, 'The link is ready')).toContain('#ticket=')
  await store(page)
})

it('so are recovery codes, and what comes in time gives the focus back to where it was', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/security')
  await page.getByRole('button', { name: 'Add an authenticator' }).click()
  await page.getByRole('img', { name: 'QR code of the secret' }).waitFor()
  const secret = (await page.locator('.secret code').innerText()).replaceAll(' ', '')
  const { letGo } = await holdBack(page, 'account_totp_confirm')
  await page.getByLabel('Code shown by the app').fill(codeOf(secret))
  await page.keyboard.press('Enter')
  const codes = await shownLate(page, letGo, 'Your recovery codes')
  await store(page)

  await page.goto('/admin/me/security')
  const again = page.getByRole('button', { name: 'Create new codes' })
  await again.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Create new codes' }).click()
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
  expect(await page.locator('.secret code').innerText()).not.toBe(codes)
  await store(page)
  await hasFocus(again)
})

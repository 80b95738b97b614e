import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { codeOf, guarded, wrongCode } from '../helpers/totp.ts'
import { consoleService, look, person } from './browser.ts'

it('asks for the second factor: a code of the authenticator, or one that was kept', async () => {
  await using test = await consoleService()
  const ada = await guarded(test, { username: 'ada' })
  const page = await person(test)
  await page.goto('/sign-in')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await page.getByLabel('Code of your authenticator').fill(wrongCode(ada.secret))
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
})

it('asks again who it is where a call needs that, and then makes the call', async () => {
  await using test = await consoleService({ step_up: 'all' })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`update auth_session set authenticated_at = now() - interval '2 days'`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/tokens?dialog=token')
  await page.getByLabel('Name').fill('deploy-bot')
  await page.getByLabel('Everything').check()
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('heading', { name: 'Is it still you?' }).waitFor()
  await look(page, 'step-up')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'deploy-bot is ready' }).waitFor()
  expect((await test.client().try.account_verify()).ok).toBe(false)
})

import { expect, it } from 'vitest'
import { consoleForFile, person, violations } from './browser.ts'

const test = await consoleForFile({ allowed_origins: ['http://insecure.test:*', 'http://127.0.0.1:*'] })
const insecure = `http://insecure.test:${new URL(test.url).port}`
const long = 'a long enough password'

it('a browser that keeps no cookies and refuses storage and channels shows the pages, and says why', async () => {
  const { password } = await test.account({ username: 'ada' })
  const page = await person(test)
  await page.addInitScript(() => {
    const refuse = (): never => {
      throw new DOMException('The operation is insecure.', 'SecurityError')
    }
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB'])
      Object.defineProperty(window, name, { get: refuse })
    Object.assign(window, { BroadcastChannel: refuse })
  })
  await page.route('**/api/account/login', async (route) => {
    const response = await route.fetch()
    const { 'set-cookie': _, ...headers } = response.headers()
    await page.context().clearCookies()
    await route.fulfill({ response, headers })
  })
  for (const path of ['/sign-in', '/admin']) {
    await page.goto(path)
    await page.getByLabel('Username or e-mail').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your browser did not keep the session' }).waitFor()
  }
})

it('copies over plain http, and says so if the browser lets nothing be copied', async () => {
  const { cookie } = await test.account({ username: 'ada', roles: ['admin'] })
  const { id } = await test.account({ username: 'grace' })
  const look = { visits: insecure, expects: /Cross-Origin-Opener-Policy/ }
  const page = await person(test, undefined, look)
  const [name = '', value = ''] = cookie.split('=')
  await page.context().addCookies([{ name, value, url: insecure }])
  await page.goto(`${insecure}/admin/people/${id}`)
  expect(await page.evaluate(() => navigator.clipboard === undefined)).toBe(true)
  await page.getByRole('button', { name: 'Copy the id' }).first().click()
  await page.getByText('Copied').waitFor()
  await page.goto(`${insecure}/admin/people`)
  const search = page.getByLabel('Name or e-mail begins with')
  await search.focus()
  await page.keyboard.press('Control+V')
  await expect.poll(() => search.inputValue()).toBe(id)

  await page.addInitScript(() => {
    document.execCommand = () => false
  })
  await page.goto(`${insecure}/admin/people/${id}`)
  await page.getByRole('button', { name: 'Copy the id' }).first().click()
  await page.getByText('does not allow copying').waitFor()
})

it('a tab follows the account that another tab of the browser signs in', async () => {
  await test.service.operations.setSettings({ open_signup: true }, { via: 'cli' })
  const ada = await test.account({ username: 'ada' })
  await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  await page.getByRole('link', { name: 'Plan' }).waitFor()
  const other = await page.context().newPage()
  // As through the link of an invite, which can also be opened while signed in.
  await other.goto('/sign-up')
  await other.getByLabel('Username').fill('grace')
  await other.getByLabel('Password', { exact: true }).fill(long)
  await other.getByRole('button', { name: 'Create account' }).click()
  await other.waitForURL('**/admin')
  await page.getByRole('button', { name: 'grace Account and theme' }).waitFor()
  await page.getByRole('heading', { name: 'Cells' }).waitFor()
  expect(await page.getByRole('link', { name: 'Plan' }).count()).toBe(0)
})

it('a tab that no other tab can notify checks who is signed in once it is shown', async () => {
  const ada = await test.account({ username: 'ada' })
  const grace = await test.account({ username: 'grace' })
  await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.addInitScript(() => {
    Object.assign(window, { BroadcastChannel: undefined })
  })
  await page.goto('/admin/cells')
  await page.getByRole('link', { name: 'Plan' }).waitFor()
  const [name = '', value = ''] = grace.cookie.split('=')
  await page.context().addCookies([{ name, value, url: test.url }])
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await page.getByRole('button', { name: 'grace Account and theme' }).waitFor()
  expect(await page.getByRole('link', { name: 'Plan' }).count()).toBe(0)
  await page.context().clearCookies()
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await page.getByRole('heading', { name: 'You were signed out' }).waitFor()
})

it('a dialog whose button is waiting is not sent by key either', async () => {
  const { cookie } = await test.account({ username: 'ada' })
  const page = await person(test, cookie)
  await page.goto('/admin/cells?dialog=new')
  let count = 0
  await page.route('**/api/rpc', async (route) => {
    const { id, method } = route.request().postDataJSON() as { id: number; method: string }
    if (method !== 'cell_create') return route.continue()
    count += 1
    const error = { code: -32000, message: 'no', data: { reason: 'rate_limited', retry_after: 600 } }
    await route.fulfill({ status: 429, json: { jsonrpc: '2.0', id, error } })
  })
  await page.getByLabel('Label').fill('Plan')
  await page.keyboard.press('Control+Enter')
  await page.getByRole('button', { name: /Again in/ }).waitFor()
  await page.keyboard.press('Control+Enter')
  await page.getByText('Too many attempts.').waitFor()
  // If the key had sent a request, it would have been answered before this one.
  await page.evaluate(() => fetch('/api/account/status'))
  expect(count).toBe(1)
  expect(await page.getByLabel('Label').inputValue()).toBe('Plan')
})

it('prints a whole page, dark on white, with every row that is loaded', async () => {
  const ada = await test.account({
    username: 'ada',
    roles: ['admin'],
    email: `${'a'.repeat(60)}@example.com`,
  })
  for (let n = 0; n < 130; n++) await ada.client.cell_create({ data: { label: `Plan ${n}` } })
  const page = await person(test, ada.cookie)
  await page.addInitScript(() => localStorage.setItem('cellkeep.theme', 'dark'))
  await page.goto('/admin/cells')
  const rows = page.locator('.table-row:not(.is-head)')
  await page.getByText('130 loaded').waitFor()
  expect(await rows.count()).toBeLessThan(100)
  await page.emulateMedia({ media: 'print' })
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')))
  await expect.poll(() => rows.count()).toBe(130)
  expect(await page.locator('.rail').isVisible()).toBe(false)
  const shown = (selector: string) => page.locator(selector).filter({ visible: true }).count()
  expect([await shown('button:not(.time)'), await shown('.time')]).toEqual([0, 130])
  expect(await page.evaluate(() => getComputedStyle(document.body).color)).toBe('rgb(26, 29, 35)')
  await page.evaluate(() => dispatchEvent(new Event('afterprint')))
  await expect.poll(() => rows.count()).toBeLessThan(100)

  await page.emulateMedia({ media: 'screen' })
  await page.goto('/admin/people')
  const email = page.getByText('@example.com')
  const isCut = () => email.evaluate((one) => one.scrollWidth > one.clientWidth)
  await expect.poll(isCut).toBe(true)
  await page.emulateMedia({ media: 'print' })
  expect(await isCut()).toBe(false)
  await page.goto('/admin/cells?dialog=new')
  await page.getByRole('heading', { name: 'New cell' }).waitFor()
  expect(await page.getByRole('heading', { name: 'Cells' }).isVisible()).toBe(false)
})

it('a character that reverses text does so neither in the title of the tab nor in a tooltip', async () => {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'plan\u202egpj.exe' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}`)
  await expect.poll(() => page.title()).toBe('planU+202Egpj.exe · Cellkeep')
  await page.goto('/admin/cells')
  await page.getByTitle('planU+202Egpj.exe').waitFor()
})

it('every part of the frame is in a landmark', async () => {
  const { cookie } = await test.account({ username: 'ada' })
  const page = await person(test, cookie)
  await page.goto('/admin/me')
  await page.getByRole('heading', { name: 'My account' }).waitFor()
  expect(await violations(page, ['region', 'landmark-one-main', 'landmark-unique'])).toEqual([])
})

it('a toast covers only the height of its text in WebKit too, where fit-content would be the whole height', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me')
  await page.getByRole('button', { name: 'Copy the id' }).first().click()
  await page.getByText('Copied').waitFor()
  const height = await page.locator('.toasts').evaluate((one) => String(one.computedStyleMap().get('height')))
  expect(height).toBe('auto')
})

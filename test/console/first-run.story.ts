import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { workspace } from '../helpers/server-process.ts'
import { consoleService, look, person } from './browser.ts'

const space = await workspace()
afterAll(() => space.remove())
const password = 'a long password'

it('a new server: from / to the first account, signed in, with the list of what to do', async () => {
  const data_dir = await space.make('first')
  await using test = await consoleService({ bootstrap: 'live', data_dir })
  const token = (await readFile(join(data_dir, 'bootstrap_token'), 'utf8')).trim()
  const page = await person(test)
  await page.goto('/')
  const setUp = page.getByRole('link', { name: 'Set up this server' })
  await setUp.waitFor()
  await look(page, 'welcome-new')
  await setUp.click()
  await page.getByRole('heading', { name: 'Set up this server' }).waitFor()

  // Each wrong field says what is wrong with it, and the first one has the focus.
  await page.getByRole('button', { name: 'Set up' }).click()
  await expect
    .poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-invalid')))
    .toBe('true')
  await look(page, 'setup-faults')

  await page.getByLabel('Setup token').fill('wrong')
  await page.getByLabel('Username').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByText('That is not the token').waitFor()
  await look(page, 'setup-refused')
  await page.getByLabel('Setup token').fill(`${token} `)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByText('There is a space before or after the token.').waitFor()
  await rm(join(data_dir, 'bootstrap_token'))
  await page.getByLabel('Setup token').fill(token)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByText('The server has no token file.').waitFor()
  await writeFile(join(data_dir, 'bootstrap_token'), `${token}\n`, { mode: 0o600 })

  await page.goto(`/setup#token=${token}`)
  await expect.poll(() => page.getByLabel('Setup token').inputValue()).toBe(token)
  await page.goto('about:blank')
  const sent: string[] = []
  page.on('request', (request) => sent.push(request.url()))
  await page.goto(`/setup#token=${token}`)
  await expect.poll(() => page.getByLabel('Setup token').inputValue()).toBe(token)
  expect(page.url()).toBe(`${test.url}/setup`)
  expect(sent.filter((url) => url.includes(token) && !url.endsWith(`#token=${token}`))).toEqual([])
  await page.getByLabel('Username').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.waitForURL('**/admin')
  await page.getByText('1 of 5').waitFor()
  await look(page, 'home-new')
  await page.goto('/admin/roles')
  await page.getByText('Roles are declared').waitFor()
  await look(page, 'roles-new')

  const second = await person(test)
  await second.goto('/setup')
  await second.getByRole('heading', { name: 'Sign in' }).waitFor()
})

it('signing in: mistakes are explained, a password manager finds both fields, and one returns to the page', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', password })
  const page = await person(test)
  await page.goto('/sign-in#to=/admin/me')
  await look(page, 'sign-in')
  await expect.poll(() => page.getByLabel('Username or e-mail').getAttribute('autocomplete')).toBe('username')
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('autocomplete')).toBe(
    'current-password',
  )
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill('not this one')
  await page.keyboard.press('Enter')
  await page.getByText('Name or password is wrong.').waitFor()
  await page.reload()
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/admin/me')
  await page.getByRole('heading', { name: 'My account' }).waitFor()
})

it('signing in too often starts a countdown, and a busy server is reported', async () => {
  await using test = await consoleService({ limit_login_account: '2/900' })
  await test.account({ username: 'ada', password })
  const page = await person(test)
  await page.goto('/sign-in')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill('not this one')
  const send = page.getByRole('button', { name: 'Sign in', exact: true })
  await page.route('**/api/account/login', (route) =>
    route.fulfill({ status: 503, json: { error: 'busy' }, headers: { 'retry-after': '1' } }),
  )
  await send.click()
  await page.getByText('The server is too busy right now.').waitFor()
  await page.unroute('**/api/account/login')
  for (let n = 0; n < 2; n++) {
    await send.click()
    await page.getByText('Name or password is wrong.').waitFor()
    await page.getByLabel('Password', { exact: true }).fill(`nor this ${n}`)
  }
  await send.click()
  await page.getByText('Too many attempts.').waitFor()
  const wait = page.getByRole('button', { name: /^Again in \d+:\d\d$/ })
  const seconds = async (): Promise<number> => Number((await wait.innerText()).replace(/\D/g, ''))
  const before = await seconds()
  expect(before).toBeGreaterThan(1000)
  await look(page, 'sign-in-limited')
  await expect.poll(seconds).toBeLessThan(before)
})

it('a page that was already open can be used once an admin has opened sign-up', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test)
  await page.goto('/sign-up')
  await page.getByLabel('Username').fill('grace')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page
    .getByRole('alert')
    .getByText(/invite/)
    .waitFor()
  await ada.client.app_settings_update({ open_signup: true })
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForURL('**/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
})

it('a return address of another origin leads home', async () => {
  await using test = await consoleService()
  const { cookie } = await test.account()
  const hidden = ['/.//evil.example', '/admin/..//evil.example', `${test.url}//evil.example`]
  const plain = ['//evil.example', '/\\evil.example', 'javascript:alert(1)', 'https://evil.example/']
  for (const to of [...plain, ...hidden]) {
    const page = await person(test, cookie)
    await page.goto(`/sign-in#to=${encodeURIComponent(to)}`)
    await page.waitForURL(`${test.url}/admin`)
  }
})

it('an invite fills the form and admits only the person it names', async () => {
  await using test = await consoleService()
  const admin = await test.account({ roles: ['admin'] })
  await admin.client.invite_create({ email: 'grace@example.com', username: 'grace' })
  const page = await person(test)
  await page.goto('/invite#u=grace&e=other@example.com')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByText('No invite matches').waitFor()
  await page.getByLabel('E-mail').fill('grace@example.com')
  await look(page, 'invite')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForURL('**/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
})

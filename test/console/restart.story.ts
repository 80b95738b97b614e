import { expect, it, onTestFinished } from 'vitest'
import { cuttingProxy } from '../helpers/cutting-proxy.ts'
import { check, consoleForFile, person } from './browser.ts'

const test = await consoleForFile()

it('a restart of the server while a form is filled in is told in its dialog; it is sent once, when the server is back', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const proxy = await cuttingProxy(test.url)
  onTestFinished(() => proxy.close())
  const page = await person({ ...test, url: proxy.url }, ada.cookie, { width: 390 })
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.postData()?.includes('"invite_create"')) sent.push(request.url())
  })
  await page.goto('/admin/people')
  await page.getByRole('heading', { name: 'People' }).waitFor()
  await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 1 })
  await page.goto('/admin/invites?dialog=invite')
  const dialog = page.getByRole('dialog')
  const [email, username] = [dialog.getByLabel('E-mail'), dialog.getByLabel('Username')]
  await email.fill('grace@example.org')
  await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 1 })
  proxy.lead('http://127.0.0.1:1')
  proxy.cut()
  const said = dialog.getByRole('alert').filter({ hasText: 'No connection. Trying again.' })
  await said.waitFor()
  await check(page, 'dialog without connection')
  await username.fill('grace')
  await username.press('Enter')
  await username.press('Control+Enter')
  expect(sent).toEqual([])
  proxy.lead(test.url)
  await expect.poll(() => said.count()).toBe(0)
  expect(await email.inputValue()).toBe('grace@example.org')
  await username.press('Enter')
  await page.getByText('The invite is ready').waitFor()
  expect(sent).toHaveLength(1)
  const { invites } = await ada.client.invite_list({})
  expect(invites).toMatchObject([{ email: 'grace@example.org', username: 'grace' }])
})

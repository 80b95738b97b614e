import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { check, consoleForFile, person } from './browser.ts'
import { press } from './keys.ts'

const test = await consoleForFile()

/** A page of which the server has another build from `deploy` on, so that its parts are gone; `lose` cuts its socket. */
async function opened(path: string) {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  let cut = async (): Promise<void> => {}
  await page.routeWebSocket(/\/api\/ws/, (socket) => {
    const server = socket.connectToServer()
    cut = async () => {
      await server.close({ code: 1001 })
      await socket.close({ code: 1001 })
    }
  })
  await page.goto(path)
  await page.locator('main h1').waitFor()
  await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 1 })
  let loads = 0
  page.on('load', () => {
    loads += 1
  })
  const deploy = async (): Promise<void> => {
    await page.route('**/admin', async (route) => {
      if (route.request().resourceType() !== 'fetch') return route.continue()
      const answer = await route.fetch()
      const body = (await answer.text()).replaceAll(/index-[\w-]{8}\.js/g, 'index-12345678.js')
      return route.fulfill({ response: answer, body })
    })
    await page.route('**/admin/assets/*-page-*.js', (route) => route.fulfill({ status: 404 }))
  }
  return { page, deploy, lose: () => cut(), loads: () => loads }
}
const bar = (page: Page) => page.getByRole('status').getByText('A new version is running')

it('a page whose parts are gone reloads by itself, once: two servers of different versions do not keep it', async () => {
  const { page, deploy, loads } = await opened('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await deploy()
  await page.getByRole('link', { name: 'People' }).click()
  // The load after the only reload meets the same, and says so.
  await page.getByRole('heading', { name: 'A new version is running' }).waitFor()
  await expect.poll(loads).toBe(1)
  await page.getByRole('link', { name: 'Roles' }).click()
  await page.getByRole('heading', { name: 'A new version is running' }).waitFor()
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Reload' }).click()
  await page.getByRole('heading', { name: 'Roles' }).waitFor()
  expect(loads()).toBe(2)
})

it('once the server is back with another build the page reloads by itself; with the same one it stays', async () => {
  const { page, deploy, lose, loads } = await opened('/admin/people')
  await page.getByRole('heading', { name: 'People' }).waitFor()
  const asked = page.waitForRequest(
    (request) => request.resourceType() === 'fetch' && /admin$/.test(request.url()),
  )
  await lose()
  await (await (await asked).response())?.finished()
  await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 1 })
  expect(loads()).toBe(0)
  await deploy()
  const reloaded = page.waitForEvent('load')
  await lose()
  await reloaded
  expect(loads()).toBe(1)
})

it('what is being typed is not lost to another build: a bar says so until one reloads', async () => {
  const { page, deploy, lose, loads } = await opened('/admin/invites?dialog=invite')
  const email = page.getByRole('dialog').getByLabel('E-mail')
  await email.fill('unsaved@words')
  await deploy()
  await lose()
  await bar(page).waitFor()
  expect(await email.inputValue()).toBe('unsaved@words')
  await email.fill('')
  await page.keyboard.press('Escape')
  await check(page, 'another build')
  expect(loads()).toBe(0)
  await page.unrouteAll()
  await press(page.getByRole('button', { name: 'Reload' }))
  await page.getByRole('heading', { name: 'Invites' }).waitFor()
  await expect.poll(() => bar(page).count()).toBe(0)
  expect(loads()).toBe(1)
})

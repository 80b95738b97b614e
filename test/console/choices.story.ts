import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { check, consoleForFile, person } from './browser.ts'

const test = await consoleForFile()

it('everybody chooses the density of rows and the time zone, and the choice stays', async () => {
  const ada = await test.account({ username: 'ada' })
  await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  const row = page.getByRole('row').filter({ hasText: 'Plan' })
  const height = async () => (await row.boundingBox())?.height
  await row.waitFor()
  const roomy = (await height()) ?? 0
  const choose = async (name: string): Promise<void> => {
    await page.getByRole('button', { name: /Account and theme/ }).click()
    await page.getByRole('menuitemradio', { name }).click()
  }
  await choose('Compact rows')
  await expect.poll(height).toBeLessThan(roomy - 8)
  await check(page, 'compact')
  const other = await page.context().newPage()
  await other.goto('/admin/cells')
  const themeOf = (tab: Page) => tab.evaluate(() => document.documentElement.dataset.theme)
  await page.bringToFront()
  await page.getByRole('heading', { name: 'Cells' }).press('t')
  await expect.poll(() => themeOf(other)).toBe('light')
  await other.close()
  await choose('Times in UTC')
  await page.reload()
  await row.waitFor()
  await expect.poll(height).toBeLessThan(roomy - 8)
  await page.goto('/admin/me/sessions')
  const [session] = (await ada.client.account_session_list()).sessions
  const inUtc = session?.expires_at.slice(0, 16).replace('T', ' ') ?? 'no session'
  const ends = page.getByText(inUtc, { exact: true })
  await ends.waitFor()
  await choose('Times in the local zone')
  await expect.poll(() => ends.count()).toBe(0)
  await choose('Comfortable rows')
  await page.goto('/admin/cells')
  await row.waitFor()
  await expect.poll(height).toBe(roomy)
})

it('if the acting actor lacks the role, another actor of the account that has it is offered', async () => {
  const ada = await test.account({ username: 'ada' })
  const admin = await test.actor(ada.id, 'Ada the admin')
  await test.actor(ada.id, 'Ada at home')
  await test.roleGrant({ actor_id: admin, role: 'admin' })
  const page = await person(test, ada.cookie)
  await page.addInitScript((id) => localStorage.setItem('cellkeep.actor', id), ada.actor_id)
  await page.goto('/admin/people')
  await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  const main = page.getByRole('main')
  await main.getByRole('button', { name: 'Act as Ada the admin' }).waitFor()
  expect(await main.getByRole('button').count()).toBe(1)
  await check(page, 'forbidden with another actor')
  await main.getByRole('button', { name: 'Act as Ada the admin' }).click()
  await page.getByRole('heading', { name: 'People' }).waitFor()
})

it('a cell is renamed from its head, and what others save meanwhile stays', async () => {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan', n: 1 } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}`)
  const rename = async (text: string): Promise<void> => {
    await page.getByRole('main').getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Rename' }).click()
    await ada.client.cell_update({ cell_id: cell.id, data_patch: { n: 2 } })
    await page.getByRole('dialog').getByLabel('Label').fill(text)
    await page.keyboard.press('Enter')
  }
  await rename('  Guide 🙂 ')
  await page.getByRole('heading', { level: 1, name: 'Guide 🙂' }).waitFor()
  expect((await ada.client.cell_get({ id: cell.id })).cell.data).toEqual({ label: 'Guide 🙂', n: 2 })
  await rename('')
  await page.getByRole('heading', { level: 1, name: 'no label' }).waitFor()
  expect((await ada.client.cell_get({ id: cell.id })).cell.data).toEqual({ n: 2 })
})

it('cells of one owner are found, by an address too', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  await ada.client.cell_create({ data: { label: 'Plan' } })
  await grace.client.cell_create({ data: { label: 'Notes' } })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  await page.getByRole('link', { name: 'Plan' }).waitFor()
  await page.getByRole('combobox', { name: 'Owner' }).pressSequentially('gr')
  await page.getByRole('option', { name: 'grace' }).click()
  await expect.poll(() => page.getByRole('link', { name: 'Plan' }).count()).toBe(0)
  await page.getByRole('link', { name: 'Notes' }).waitFor()
  expect(new URL(page.url()).searchParams.get('owner')).toBe(grace.actor_id)
  await page.reload()
  await page.getByRole('link', { name: 'Notes' }).waitFor()
  await check(page, 'cells of one owner')
  await page.getByRole('button', { name: 'Owner grace Remove Owner' }).click()
  await page.getByRole('link', { name: 'Plan' }).waitFor()
})

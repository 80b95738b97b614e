import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { check, consoleForFile, person } from './browser.ts'
import { hasFocus, isSomewhere } from './keys.ts'

const test = await consoleForFile()
const none = 'Nobody has a name that begins with this.'

/** Refuses the next calls of a method, until it is told to let them pass. */
async function refuse(page: Page, method: string) {
  let isRefused = true
  await page.route('**/api/rpc', async (route) => {
    const sent = route.request().postDataJSON() as { id: number; method: string }
    if (!isRefused || sent.method !== method) return route.continue()
    const error = { code: -32000, message: 'no', data: { reason: 'service_unavailable' } }
    await route.fulfill({ status: 503, json: { jsonrpc: '2.0', id: sent.id, error } })
  })
  return {
    letPass: () => {
      isRefused = false
    },
  }
}

it('a picker says that it finds nobody, and the text stays', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  const owner = page.getByRole('combobox', { name: 'Owner' })
  const said = page.getByRole('status').filter({ hasText: none })
  await owner.pressSequentially('gru')
  await said.waitFor()
  await check(page, 'picker that finds nobody')
  await page.getByRole('heading', { name: 'Cells' }).click()
  await said.waitFor()
  expect(await owner.inputValue()).toBe('gru')
  await owner.fill('gr')
  await page.getByRole('option', { name: 'grace' }).waitFor()
  expect(await said.count()).toBe(0)
  // Longer than any name.
  await owner.fill('g'.repeat(60))
  await said.waitFor()
})

it('a picker says that the search has failed, and searches again', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  const { letPass } = await refuse(page, 'actor_search')
  await page.goto('/admin/cells')
  const owner = page.getByRole('combobox', { name: 'Owner' })
  await owner.pressSequentially('gra')
  const fault = page.getByRole('alert').filter({ hasText: 'The database cannot be reached right now.' })
  await fault.waitFor()
  expect(await page.getByText(none).count()).toBe(0)
  await check(page, 'picker that has failed')
  const again = page.getByRole('button', { name: 'Try again' })
  await page.keyboard.press('Tab')
  await hasFocus(again)
  letPass()
  await page.keyboard.press('Enter')
  await hasFocus(owner)
  expect(await owner.inputValue()).toBe('gra')
  await page.getByRole('option', { name: 'grace' }).waitFor()
  expect(await fault.count()).toBe(0)
  await page.keyboard.press('Enter')
  await expect.poll(() => new URL(page.url()).searchParams.get('owner')).toBe(grace.actor_id)
  await isSomewhere(page)
})

it('Enter chooses nothing that an earlier text has found', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.account({ username: 'linda' })
  const linus = await test.account({ username: 'linus' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  const owner = page.getByRole('combobox', { name: 'Owner' })
  await owner.pressSequentially('lin')
  await page.getByRole('option', { name: 'linda' }).waitFor()
  const held = Promise.withResolvers<void>()
  await page.route('**/api/rpc', async (route) => {
    await held.promise
    await route.continue()
  })
  await owner.pressSequentially('us')
  await page.keyboard.press('Enter')
  held.resolve()
  await page.getByRole('option', { name: 'linda' }).waitFor({ state: 'detached' })
  expect(await owner.inputValue()).toBe('linus')
  await page.keyboard.press('Enter')
  await expect.poll(() => new URL(page.url()).searchParams.get('owner')).toBe(linus.actor_id)
})

it('who may search for nobody is told so', async () => {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}/sharing`)
  await page.getByRole('combobox', { name: 'Name' }).pressSequentially('gra')
  await page.getByText('You cannot search for names. Paste the id of an actor.').waitFor()
})

it('a picker of cells and the palette tell a failed search from one that finds nothing', async () => {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  await ada.client.cell_create({ data: { label: 'Notes' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}/items`)
  const field = page.getByRole('combobox', { name: 'Cell' })
  await field.pressSequentially('guide')
  await page.getByRole('status').filter({ hasText: 'No cell is found by this.' }).waitFor()
  await field.fill('')
  await page.getByRole('option', { name: 'Notes' }).waitFor()

  const { letPass } = await refuse(page, 'cell_list')
  await field.blur()
  const fault = page.getByRole('alert').filter({ hasText: 'The database cannot be reached right now.' })
  await field.fill('no')
  await fault.waitFor()
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog')
  await palette.getByRole('combobox').pressSequentially('notes')
  await palette.getByRole('alert').waitFor()
  expect(await palette.getByText('No results.').count()).toBe(0)
  letPass()
  await palette.getByRole('button', { name: 'Try again' }).click()
  await palette.getByRole('option', { name: 'Notes' }).waitFor()
  expect(await palette.getByRole('alert').count()).toBe(0)
  await hasFocus(palette.getByRole('combobox'))
})

it('the form that gives a role says that the roles could not be read, and reads them again', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  const { letPass } = await refuse(page, 'registry_list')
  await page.goto(`/admin/people/${grace.id}?dialog=give`)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Note').fill('Please')
  await dialog.getByRole('alert').filter({ hasText: 'The database cannot be reached' }).waitFor()
  letPass()
  await dialog.getByRole('button', { name: 'Try again' }).click()
  await dialog.getByRole('combobox', { name: 'Role' }).selectOption('admin')
  expect(await dialog.getByLabel('Note').inputValue()).toBe('Please')
  await isSomewhere(page)
})

it('a search for methods says that it finds none', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  const none = page.getByRole('status').filter({ hasText: 'No method has this in its name.' })
  await page.goto('/admin/api')
  await page.getByRole('searchbox').fill('cell_zz')
  await none.waitFor()
  await check(page, 'no method')
  await page.goto('/admin/me/tokens?dialog=token')
  await page.getByRole('radio', { name: /^Chosen methods/ }).check()
  await page.getByRole('dialog').getByRole('searchbox').fill('cell_zz')
  await none.waitFor()
  await page.getByRole('dialog').getByRole('searchbox').fill('cell_get')
  await expect.poll(() => none.count()).toBe(0)
})

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { TestService } from '../../src/testing/index.ts'
import { consoleService, look, person } from './browser.ts'

let test: TestService
let ada: Awaited<ReturnType<TestService['account']>>
beforeAll(async () => {
  test = await consoleService()
  ada = await test.account({ username: 'ada', roles: ['admin'] })
})
afterAll(() => test[Symbol.asyncDispose]())

it('the palette goes to pages, people, paths and ids, and does what the page can', async () => {
  const grace = await test.account({ username: 'grace' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Handbook' } })
  await ada.client.cell_update({ cell_id: cell.id, path: '/handbook' })
  const page = await person(test, ada.cookie)
  const choose = async (text: string, option: string): Promise<void> => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Command palette' }).fill(text)
    await page.getByRole('option', { name: option }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('combobox', { name: 'Command palette' }).waitFor({ state: 'detached' })
  }
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('option', { name: 'Home page' }).waitFor()
  expect(await page.getByRole('option').count()).toBe(8)
  await look(page, 'palette')
  await page.keyboard.press('Escape')
  await choose('gra', 'grace person')
  await page.getByRole('heading', { name: 'grace', exact: true }).waitFor()
  await choose('give', 'Give role on this page')
  await page.getByRole('dialog').getByRole('heading', { name: 'grace' }).waitFor()
  await page.keyboard.press('Escape')
  await choose('/hand', '/handbook')
  await page.getByRole('heading', { name: 'Handbook' }).waitFor()
  await choose('delete', 'Delete cell')
  await page.getByRole('heading', { name: 'Delete Handbook for good?' }).waitFor()
  await page.keyboard.press('Escape')
  await choose(grace.id, grace.id)
  await page.getByRole('heading', { name: 'grace', exact: true }).waitFor()
  await choose(grace.actor_id, grace.actor_id)
  await page.getByRole('heading', { name: 'grace', exact: true }).waitFor()
  await choose(cell.id, cell.id)
  await page.getByRole('heading', { name: 'Handbook' }).waitFor()
  await choose('0190f000-0000-7000-8000-000000000000', '0190')
  await page.getByText('No cell, person or actor has this id').waitFor()

  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Command palette' }).fill('zzz')
  await page.getByRole('dialog').getByText('No results.').waitFor()

  const other = await person(test, grace.cookie)
  await other.goto(`/admin/go/${cell.id}`)
  await other.getByText('No cell, person or actor has this id').waitFor()
})

it('single keys make, edit, share, copy, go back; none counts while one types; they can be switched off', async () => {
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  const { keyboard } = page
  const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  await page.goto('/admin')
  await heading('Home')
  for (const [letter, name] of Object.entries({
    i: 'Inbox',
    m: 'My account',
    r: 'Roles',
    e: 'API',
    c: 'Cells',
  })) {
    await keyboard.press('g')
    await keyboard.press(letter)
    await heading(name)
  }
  await page.getByRole('link', { name: 'Plan' }).waitFor()
  await keyboard.press('n')
  await page.getByRole('dialog', { name: 'New cell' }).getByLabel('Label').fill('Nets')
  await keyboard.press('Control+Enter')
  await heading('Nets')
  await keyboard.press('Escape')
  await heading('Cells')
  await page.getByRole('link', { name: 'Nets' }).waitFor()
  await keyboard.press('j')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Nets')
  await keyboard.press('j')
  await keyboard.press('Enter')
  await heading('Plan')
  await keyboard.press('c')
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(cell.id)
  await keyboard.press('s')
  await page.getByRole('combobox', { name: 'Name' }).waitFor()
  await keyboard.press('e')
  const editor = page.getByRole('textbox', { name: 'JSON of the cell' })
  await expect
    .poll(() => editor.evaluate((own) => (own.getRootNode() as ShadowRoot).activeElement === own))
    .toBe(true)
  // Keys typed in the shadow root are no shortcuts: `t` would change the theme, `?` open the list of keys.
  await keyboard.press('Control+End')
  await keyboard.type('t?gh')
  await heading('Plan')
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(await editor.innerText()).toContain('}t?gh')
  // Tab stays in the editor until Escape is pressed.
  await keyboard.press('Tab')
  const isIn = () => editor.evaluate((own) => (own.getRootNode() as ShadowRoot).activeElement !== null)
  expect(await isIn()).toBe(true)
  await keyboard.press('Escape')
  await keyboard.press('Tab')
  expect(await isIn()).toBe(false)
  page.once('dialog', (asked) => void asked.accept())
  await page.getByRole('button', { name: 'Cancel' }).click()
  await heading('Plan')

  await keyboard.press('?')
  await page.getByLabel('Single keys work').uncheck()
  await look(page, 'shortcuts-off')
  await keyboard.press('Escape')
  await keyboard.press('e')
  await keyboard.press('?')
  await keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Command palette' }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(1)
  expect(await editor.count()).toBe(0)
})

it('the palette opens from a row too, and Back undoes a double click', async () => {
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.getByRole('link', { name: 'Roles', exact: true }).dblclick()
  await page.getByRole('link', { name: 'keeper' }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Command palette' }).waitFor()
  await page.keyboard.press('Escape')
  await page.goBack()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
})

it('the letter after g counts for a while after that g, however often it was pressed before', async () => {
  const page = await person(test, ada.cookie)
  await page.clock.install()
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.clock.runFor(700)
  await page.keyboard.press('g')
  await page.clock.runFor(800)
  await page.keyboard.press('r')
  await page.getByRole('heading', { name: 'Roles' }).waitFor()
  await page.keyboard.press('g')
  await page.clock.runFor(1_600)
  await page.keyboard.press('i')
  await page.clock.runFor(100)
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Roles')
})

it('the keys with Control work while Caps Lock is on', async () => {
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.keyboard.press('Control+K')
  await page.getByRole('combobox', { name: 'Command palette' }).waitFor()
})

it('keys work on a keyboard that writes another script', async () => {
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  const type = (key: string, code: string, ctrlKey = false) =>
    page.evaluate(
      (init) => document.body.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true })),
      { key, code, ctrlKey },
    )
  await type('п', 'KeyG')
  await type('ш', 'KeyI')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await type('л', 'KeyK', true)
  await page.getByRole('combobox', { name: 'Command palette' }).waitFor()
})

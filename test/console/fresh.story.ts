import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { consoleForFile, person } from './browser.ts'
import { toTheEnd } from './rows.ts'

/** Without the stream, a page learns of its own changes only from itself. */
const test = await consoleForFile({
  roles: [{ name: 'editor', grant_paths: ['admin'] }],
  audit_stream: false,
})

/** The page of an admin, ada, among 901 people. */
async function amongMany() {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`
    insert into account (username, password_hash) select 'many' || i, '!' from generate_series(1, 900) i`)
  return await person(test, ada.cookie)
}

it('a changed name is new wherever it is shown', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  await grace.client.cell_create({ data: { label: 'Plan' }, visibility: 'public' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  const row = page.getByRole('row', { name: 'Plan' })
  await row.getByText('grace').waitFor()
  const rail = (name: string) => page.locator('.rail').getByRole('link', { name }).first()
  await rail('People').click()
  await page.getByRole('link', { name: 'grace' }).click()
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change username' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('hopper')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'hopper' }).waitFor()
  await rail('Cells').click()
  // The name of the actor differs, and stays.
  await row.getByText('grace (hopper)').waitFor()
})

/** A page of a cell; `grow` gives the cell an item. */
async function planAndPart() {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const { cell: part } = await ada.client.cell_create({ data: { label: 'Part' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}`)
  const grow = () => ada.client.cell_item_insert({ parent_id: cell.id, child_id: part.id, position: 'a' })
  return { page, cell, grow }
}

it('before a cell is deleted, what that cuts off is counted anew each time', async () => {
  const { page, cell, grow } = await planAndPart()
  const ask = async (): Promise<void> => {
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete cell' }).click()
  }
  await ask()
  await page.getByText('There is no undo.', { exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await grow()
  await test.cellGrant(cell.id, 'viewer', { role: 'editor', scope_id: null })
  await ask()
  await page
    .getByText('Its 1 item will stay as a cell. Access by 1 share will end. There is no undo.')
    .waitFor()
  await page.getByLabel('Type Plan to confirm').waitFor()
})

it('before a cell is copied, what a copy would contain is counted anew each time', async () => {
  const { page, grow } = await planAndPart()
  const ask = async (): Promise<void> => {
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Copy cell' }).click()
    await page.getByLabel('Copy what it links to as well').check()
  }
  await ask()
  await page.getByText('Copies 1 cell that you can see, 1 level').waitFor()
  await page.keyboard.press('Escape')
  await grow()
  await ask()
  await page.getByText('Copies 2 cells that you can see, 2 levels').waitFor()
})

it('the page of a role shows at once who holds it after it was given and ended', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  const rail = (name: string) => page.locator('.rail').getByRole('link', { name }).first()
  const toRole = async (): Promise<void> => {
    await rail('Roles').click()
    await page.getByRole('link', { name: 'editor' }).click()
  }
  await page.goto('/admin/roles/editor')
  await page.getByText('Nobody holds it').waitFor()
  await rail('People').click()
  await page.getByRole('link', { name: 'grace' }).click()
  await page.getByRole('button', { name: 'Give role' }).click()
  await page.getByLabel('Role', { exact: true }).selectOption('editor')
  await page.getByRole('button', { name: 'Assign editor' }).click()
  await page.locator('.toast').getByText('grace').waitFor()
  await toRole()
  await page.getByRole('row', { name: 'grace' }).first().waitFor()
  await expect.poll(() => page.getByText('Nobody holds it').count()).toBe(0)
  await rail('People').click()
  await page.getByRole('link', { name: 'grace' }).click()
  await page.getByRole('button', { name: 'End editor everywhere' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'End editor' }).click()
  await expect.poll(() => page.locator('dialog').count()).toBe(0)
  await toRole()
  await page.getByText('Nobody holds it').waitFor()
})

it('a role that was assigned meanwhile is there when the person comes back to the window', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, grace.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await ada.client.role_grant_assign({ to_account_id: grace.id, role: 'admin' })
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await page.getByRole('link', { name: 'People', exact: true }).waitFor()
})

it('Back from a person to the end of a long list returns to its row, which shows the role that was given', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`
    insert into account (username, password_hash, created_at)
    select name, '!', now() - i * interval '1 minute' from generate_series(1, 900) i, lateral (select 'many' || i as name) named`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/people')
  await page.getByText(/ loaded$/).waitFor()
  await toTheEnd(page, 901)
  const last = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'ada', exact: true }) })
  const before = await last.boundingBox()
  await page.getByRole('link', { name: 'ada', exact: true }).click()
  await page.getByRole('button', { name: 'Give role' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Role', { exact: true }).selectOption('editor')
  await dialog.getByRole('button', { name: 'Assign editor' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.goBack()
  await last.getByText('editor').waitFor()
  await expect.poll(() => last.boundingBox()).toEqual(before)
})

it('a reload and Forward return to where a long list was scrolled to', async () => {
  const page = await amongMany()
  await page.goto('/admin/roles')
  await page.locator('.rail').getByRole('link', { name: 'People' }).first().click()
  await page.getByText(/ loaded$/).waitFor()
  await toTheEnd(page, 901)
  const top = () => page.evaluate(() => Math.round(scrollY))
  const end = await top()
  await page.reload()
  await expect.poll(top).toBe(end)
  await page.mouse.move(600, 400)
  await page.mouse.wheel(0, -1000)
  await expect.poll(top).toBe(end - 1000)
  await expect.poll(() => page.evaluate(() => Math.round(history.state.top))).toBe(end - 1000)
  await page.goBack()
  await page.getByRole('heading', { name: 'Roles' }).waitFor()
  await page.goForward()
  await expect.poll(top).toBe(end - 1000)
})

it('a row is taken from the end of a long list without losing the place', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`
    insert into invite (username, created_at)
    select name, now() - i * interval '1 minute' from generate_series(1, 900) i, lateral (select 'many' || i as name) named`)
  const page = await person(test, ada.cookie)
  await page.goto('/admin/invites')
  await page.getByText(/ loaded$/).waitFor()
  await toTheEnd(page, 900)
  const row = page.getByRole('row').filter({ hasText: 'many895' })
  const before = await row.boundingBox()
  const last = page.getByRole('row').filter({ hasText: 'many900' })
  await last.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByText('899 loaded').waitFor()
  // The page is one row shorter, so its end is, too.
  const height = (await row.boundingBox())?.height ?? 0
  await expect.poll(async () => (await row.boundingBox())?.y).toBeCloseTo((before?.y ?? 0) + height, 0)
})

it('a long list is not read again page by page whenever somebody comes back to the window', async () => {
  const page = await amongMany()
  await page.goto('/admin/people')
  await page.getByText(/ loaded$/).waitFor()
  await toTheEnd(page, 901)
  await page.clock.install()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.postDataJSON()?.method))
  const hide = (hidden: boolean): Promise<void> =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, hidden)
  // After five minutes a hidden tab closes its socket, and opens it again when it is shown.
  await hide(true)
  await page.clock.fastForward(301_000)
  await hide(false)
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await expect.poll(() => asked).toContain('role_grant_offer_list')
  await page.clock.runFor(3_000)
  await page.waitForLoadState('networkidle')
  expect(asked).not.toContain('admin_account_list')
})

import { randomUUID } from 'node:crypto'
import type { Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { check, consoleService, look, person } from './browser.ts'

/** By keys: `fill` selects in the page, and the editor undoes that if it draws before it notices. */
async function rewrite(editor: Locator, text: string): Promise<void> {
  await editor.press('Control+a')
  await editor.page().keyboard.insertText(text)
}

it('makes a cell, edits it, reviews what changes and saves it', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  await page.getByText('No cells yet').waitFor()
  await look(page, 'cells-empty')
  await page.getByRole('button', { name: 'New cell' }).click()
  await page.getByLabel('Label').fill('Handbook')
  await page.getByRole('dialog').getByLabel('Kind').fill('doc')
  await page.getByLabel('Data').fill('{"tags": ["a", "b"], "meta": {"pages": 12}}')
  await look(page, 'cell-new')
  await page.getByRole('button', { name: 'Create cell' }).click()
  await page.getByRole('heading', { name: 'Handbook' }).waitFor()
  await page.getByText('version 1').waitFor()
  await look(page, 'cell')

  await page.getByRole('button', { name: 'Edit' }).click()
  const editor = page.getByLabel('JSON of the cell')
  await rewrite(editor, '{"label": "Handbook", "a": 1, "a": 2}')
  await page.getByText('The key “a” appears twice.').first().waitFor()
  await look(page, 'cell-edit-fault')
  await rewrite(editor, '{"label": "Guide", "tags": ["a", "b"], "meta": {"pages": 12, "lang": "en"}}')
  await page.keyboard.press('Control+s')
  await page.getByRole('heading', { name: '2 changes' }).waitFor()
  await look(page, 'cell-review')
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByRole('heading', { name: 'Guide' }).waitFor()
  await page.getByText('version 2').waitFor()

  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByText('Nothing changed.').waitFor()
  const { cells } = await ada.client.cell_list({})
  expect(cells).toMatchObject([{ version: 2, kind: 'doc', data: { label: 'Guide', meta: { lang: 'en' } } }])
})

it('two people save: different keys are both kept, the same key is asked about', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan', a: 1, b: 1 } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}?edit=1`)
  const editor = page.getByLabel('JSON of the cell')
  await rewrite(editor, '{"label": "Plan", "a": 2, "b": 1}')
  await ada.client.cell_update({ cell_id: cell.id, data_patch: { b: 2 } })
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('both are kept').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('version 3').waitFor()
  expect((await ada.client.cell_get({ id: cell.id })).cell.data).toEqual({ label: 'Plan', a: 2, b: 2 })

  await page.getByRole('button', { name: 'Edit' }).click()
  await rewrite(editor, '{"label": "Mine", "a": 2, "b": 2}')
  await ada.client.cell_update({ cell_id: cell.id, data_patch: { label: 'Theirs' } })
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('1 place changed on both sides').waitFor()
  await look(page, 'cell-conflict')
  await page.getByLabel('Theirs').check()
  await page.getByRole('dialog').getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('Nothing changed.').waitFor()
  expect((await ada.client.cell_get({ id: cell.id })).cell).toMatchObject({
    version: 4,
    data: { label: 'Theirs' },
  })
})

it('shares with a person and with a role, changes the level, stops, and makes public only after asking', async () => {
  await using test = await consoleService({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}/sharing`)
  await page.getByRole('combobox', { name: 'Name' }).fill('gra')
  await page.getByRole('option', { name: 'grace' }).waitFor()
  await check(page, 'who it is shared with')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await page.getByText('Shared.').waitFor()
  expect((await grace.client.cell_get({ id: cell.id })).can_edit).toBe(false)
  await page.getByRole('combobox', { name: 'May grace', exact: true }).selectOption('editor')
  await page.getByText('Changed.').waitFor()
  expect((await grace.client.cell_get({ id: cell.id })).can_edit).toBe(true)

  await page.getByRole('button', { name: 'Remove grace', exact: true }).waitFor()
  await page.getByLabel('Share with').selectOption('role')
  await page.getByRole('button', { name: 'Share Choose a role.' }).waitFor()
  await page.getByRole('combobox', { name: 'Role' }).selectOption('editor')
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await page.getByText('everybody with editor').first().waitFor()
  await page.getByText('0 now').waitFor()
  for (const name of ['bob', 'eve']) await test.account({ username: name, roles: ['editor'] })
  await page.reload()
  await page.getByText('2 now').waitFor()
  await look(page, 'cell-sharing')
  await page.getByRole('link', { name: 'Why' }).click()
  await page.getByText('They own it.').waitFor()
  await page.getByRole('combobox').fill('gra')
  await page.getByRole('option', { name: 'grace' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByText('It is shared with them.').first().waitFor()
  await look(page, 'cell-why')
  await page.getByRole('link', { name: 'Sharing' }).click()
  await page.getByRole('button', { name: 'Remove everybody with editor', exact: true }).click()
  await page.getByText('everybody with editor').first().waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Make public' }).click()
  await page.getByText('Anyone can read this cell, without an account.').waitFor()
  expect((await test.client().try.cell_get({ id: cell.id })).ok).toBe(false)
  await page.getByRole('dialog').getByRole('button', { name: 'Make public' }).click()
  await page.getByText('Anyone can read it now.').waitFor()
  expect((await test.client().try.cell_get({ id: cell.id })).ok).toBe(true)
})

it('shares with those who have a role at a place of one’s own, however many there are, or by an id', async () => {
  await using test = await consoleService({
    roles: [{ name: 'editor', grant_paths: ['admin'], applicable_scope_kinds: ['team'] }],
    scope_kinds: [{ name: 'team' }],
  })
  const hopper = await test.account({ username: 'hopper' })
  const noether = await test.account({ username: 'noether' })
  for (const [at, scope_id] of Array.from({ length: 101 }, () => randomUUID()).entries()) {
    const grant = { role: 'editor', scope_kind: 'team', scope_id }
    await test.roleGrant({ actor_id: hopper.actor_id, ...grant })
    if (at === 100) await test.roleGrant({ actor_id: noether.actor_id, ...grant })
  }
  for (const [account, placeholder] of [
    [hopper, 'Start typing a name'],
    [noether, 'Start typing a name'],
    [await test.account({ username: 'lovelace' }), 'Paste the id of an actor'],
  ] as const) {
    const { cell } = await account.client.cell_create({ data: { label: 'Plan' } })
    const page = await person(test, account.cookie)
    await page.goto(`/admin/cells/${cell.id}/sharing`)
    const field = page.getByRole('combobox', { name: 'Name' })
    await field.waitFor()
    expect(await field.getAttribute('placeholder')).toBe(placeholder)
    if (account !== hopper) continue
    await field.pressSequentially('hopp')
    await page.getByRole('option', { name: 'hopper' }).waitFor()
  }
})

it('a grantee leaves a cell, and is told if a role still admits', async () => {
  await using test = await consoleService({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace', roles: ['editor'] })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const cell_id = cell.id
  const share = (principal: { actor_id: string } | { role: string }) =>
    ada.client.cell_grant_create({ cell_id, level: 'editor', principal })
  await share({ actor_id: grace.actor_id })
  const { grant } = await share({ role: 'editor' })
  const page = await person(test, grace.cookie)
  await page.goto(`/admin/cells/${cell_id}/sharing`)
  const leave = page.getByRole('main').getByRole('button', { name: 'Leave', exact: true })
  const confirm = async (): Promise<void> => {
    await leave.click()
    await check(page, 'leaving a cell')
    await page.getByRole('dialog', { name: 'Leave Plan?' }).getByRole('button', { name: 'Leave' }).click()
  }
  await confirm()
  await page.getByText('You can still see it').waitFor()
  await leave.waitFor({ state: 'detached' })
  expect((await ada.client.cell_grant_list({ cell_id })).grants).toEqual([grant])

  await share({ actor_id: grace.actor_id })
  await ada.client.cell_grant_revoke({ grant_id: grant.id })
  await page.reload()
  await confirm()
  await page.getByText('You left the cell.').waitFor()
  await page.getByRole('heading', { name: 'Cells', level: 1 }).waitFor()
  expect((await grace.client.try.cell_get({ id: cell_id })).ok).toBe(false)
})

it('relations and items: added, moved, removed and undone', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const make = async (label: string) => (await ada.client.cell_create({ data: { label } })).cell.id
  const [book, one, two] = [await make('Book'), await make('Chapter one'), await make('Chapter two')]
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${book}/relations`)
  await page.getByLabel('Name').fill('intro')
  // The cells changed last are offered at once, newest first.
  const other = page.getByRole('combobox', { name: 'Other cell' })
  await other.click()
  await expect
    .poll(() => page.getByRole('option').allInnerTexts())
    .toEqual(['Chapter two', 'Chapter one', 'Book'])
  await other.fill('ONE')
  await expect.poll(() => page.getByRole('option').allInnerTexts()).toEqual(['Chapter one'])
  await check(page, 'a cell looked for')
  await other.press('Enter')
  await page.getByRole('button', { name: 'Add relation' }).click()
  await page.getByRole('link', { name: 'Chapter one' }).waitFor()
  await look(page, 'cell-relations')
  await page.getByRole('button', { name: 'Remove intro' }).click()
  await page.getByRole('link', { name: 'Chapter one' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('link', { name: 'Chapter one' }).waitFor()

  await page.getByRole('link', { name: 'Items' }).click()
  const cell = page.getByRole('combobox', { name: 'Cell' })
  for (const id of [one, two]) {
    await cell.fill(id)
    await page.getByRole('button', { name: 'Add item' }).click()
    await page.getByRole('link', { name: id === one ? 'Chapter one' : 'Chapter two' }).waitFor()
  }
  await look(page, 'cell-items')
  await page
    .getByRole('listitem')
    .filter({ hasText: 'Chapter two' })
    .getByRole('button', { name: 'More actions' })
    .click()
  await page.getByRole('menuitem', { name: 'Move up' }).click()
  await page.getByText('Item 1 of 2.').waitFor()
  const { items } = await ada.client.cell_item_list({ parent_id: book })
  expect(items.map(({ child_id }) => child_id)).toEqual([two, one])
  await page.getByRole('link', { name: 'Timeline' }).click()
  await page.getByText('moved an item').waitFor()
  await look(page, 'cell-timeline')
})

it('emoji of several and words that need joiners stay whole; a joiner elsewhere is shown', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  // Persian and Marathi.
  const words = 'می\u200cخواهم کتاب\u200cها दऱ\u200dया'
  const emoji = `👩‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍🚀 🤷🏽‍♀️ ${words}`
  const { cell } = await ada.client.cell_create({
    data: { label: emoji, hidden: 'a\u200db \u200d👩 👩\u200d م\u200c c\u200cd م\u200d👩' },
  })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}`)
  await page.getByRole('heading', { name: emoji, exact: true }).waitFor()
  await page.getByText('aU+200Db U+200D👩 👩U+200D مU+200C cU+200Cd مU+200D👩').waitFor()
  expect(await page.title()).toBe(`${emoji} · Cellkeep`)
})

it('hostile content stays text: scripts, links, marks and characters that reverse it', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const label =
    '<img src=x onerror=alert(1)> \u202egnp.exe \u0000'.replace('\u0000', '') + 'a\u0301'.repeat(400)
  const data = JSON.parse(
    JSON.stringify({ label, script: '<script>alert(1)</script>', link: 'javascript:alert(1)' }).replace(
      '{',
      '{"__proto__":{"x":1},"constructor":2,',
    ),
  )
  const { cell } = await ada.client.cell_create({ data, kind: '"><svg onload=alert(1)>' })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}`)
  await page.getByText('U+202E').first().waitFor()
  await page.getByText('<script>alert(1)</script>').waitFor()
  expect(await page.locator('main [href^="javascript:"], main img, main script').count()).toBe(0)
  await look(page, 'hostile')
  await page.getByRole('button', { name: 'More actions' }).first().click()
  await page.getByRole('menuitem', { name: 'Delete cell' }).click()
  const asked = page.getByRole('dialog')
  // A cell whose label nobody could type is named by its id.
  await asked.getByRole('heading', { name: cell.id.slice(0, 8) }).waitFor()
  expect(await asked.innerText()).not.toMatch(/\u202e|\p{M}{9}/u)
  await look(page, 'hostile-dialog')
  await page.keyboard.press('Escape')
  await page.goto('/admin/cells')
  await page.getByText('U+202E').first().waitFor()
  await look(page, 'hostile-list')
})

it('a hostile name changes nothing beside it: in menus, sentences, options, buttons and dialogs', async () => {
  await using test = await consoleService({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace' })
  const to_actor_id = await test.actor(grace.id, `sdneirf \u202e${'o\u0301'.repeat(40)}`)
  await ada.client.role_grant_offer_create({ to_account_id: grace.id, to_actor_id, role: 'editor' })
  await grace.client.account_token_create({
    name: 'bot\u202egpj.exe',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  const page = await person(test, grace.cookie)
  const isCalm = async (): Promise<void> =>
    expect(await page.locator('body').innerText()).not.toMatch(/\u202e|\p{M}{9}/u)
  await page.goto('/admin/inbox')
  await page.getByRole('button', { name: /^Accept as sdneirf U\+202E/ }).waitFor()
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await look(page, 'hostile-actor')
  await isCalm()
  await page.getByRole('menuitemradio', { name: /^Act as sdneirf U\+202E/ }).click()
  await page.goto('/admin/people')
  await page.getByText('You act as sdneirf U+202E').waitFor()
  await isCalm()
  await page.goto('/admin/me/tokens')
  await page.getByRole('button', { name: /^Revoke bot/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke botU+202Egpj.exe' }).waitFor()
  await look(page, 'hostile-token')
  await isCalm()
  const admin = await person(test, ada.cookie)
  await admin.goto(`/admin/people/${grace.id}?dialog=give`)
  const options = admin.getByLabel('For the actor').locator('option')
  await expect
    .poll(() => options.allTextContents())
    .toEqual(expect.arrayContaining(['grace', `sdneirf U+202E${'o\u0301'.repeat(40)}`]))
})

it('shows a large cell quickly and in pieces, and a long list in part', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({
    data: { label: 'Large', all: Array.from({ length: 50_000 }, (_, n) => n % 10) },
  })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  await page.getByRole('link', { name: 'Large' }).click()
  await page.getByText('[50000]').waitFor()
  await page.getByRole('treeitem', { name: 'Show 100 more of 49,900' }).waitFor()
  expect(await page.locator('.tree li').count()).toBeLessThan(200)
  await page.getByRole('treeitem', { name: 'Show 100 more of 49,900' }).press('Enter')
  await page.getByRole('treeitem', { name: '100 0' }).and(page.locator(':focus')).waitFor()
  await page.goto('/admin/cells')
  for (let n = 0; n < 250; n++) await ada.client.cell_create({ data: { label: `Cell ${n}` } })
  await page.reload()
  await page.getByRole('link', { name: 'Cell 249' }).waitFor()
  expect(await page.getByRole('row').count()).toBeLessThan(80)
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
  await page.getByRole('link', { name: 'Cell 60', exact: true }).waitFor()
  await expect
    .poll(async () => {
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
      return page.getByRole('link', { name: 'Large' }).count()
    })
    .toBe(1)
  expect(cell.version).toBe(1)
})

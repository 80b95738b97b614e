import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CellDataIssues } from '../../src/registry/hooks.ts'
import type { TestService } from '../../src/testing/index.ts'
import { chain, children } from '../helpers/cell-graphs.ts'
import { consoleService, look, person } from './browser.ts'

type Account = Awaited<ReturnType<TestService['account']>>
let test: TestService
let ada: Account
beforeAll(async () => {
  test = await consoleService({
    hooks: {
      validateData: (_kind, data) => {
        if (data.forbidden) throw new CellDataIssues([{ path: ['list', 1], message: 'No two here.' }])
        return data
      },
    },
  })
  ada = await test.account({ username: 'ada' })
})
afterAll(() => test[Symbol.asyncDispose]())

const make = async (data: object) => (await ada.client.cell_create({ data: data as never })).cell.id
async function edit(page: Page, id: string): Promise<Locator> {
  await page.goto(`/admin/cells/${id}?edit=1`)
  const editor = page.getByRole('textbox', { name: 'JSON of the cell' })
  await isIn(editor)
  return editor
}
/** The editor has the focus when it opens, and again after each mistake in it. */
const isIn = (editor: Locator) =>
  expect
    .poll(() => editor.evaluate((own) => (own.getRootNode() as ShadowRoot).activeElement === own))
    .toBe(true)
/** All at once, as from another program. */
async function paste(page: Page, editor: Locator, text: string): Promise<void> {
  await page.evaluate((text) => navigator.clipboard.writeText(text), text)
  await isIn(editor)
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Control+v')
}
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

/** After the sessions of ada have ended. */
async function signInAs(page: Page, { username, password }: Account): Promise<void> {
  await (await test.sessions.create(ada.id)).client.account_session_revoke_all({})
  await press(page, 'Sign in again')
  await page.getByLabel('Username or e-mail').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.keyboard.press('Enter')
}

it('marks on its line what cannot be sent, and what the service refuses', async () => {
  const id = await make({ label: 'Plan' })
  const page = await person(test, ada.cookie)
  const editor = await edit(page, id)
  const sent: string[] = []
  page.on('request', (request) => sent.push(request.postData() ?? ''))
  for (const [text, line, message] of [
    ['{\n "tags": ["a",,]\n}', 2, 'Expected a value here.'],
    ['{\n "a": 1,\n "\\u0061": 2}', 3, 'The key “a” appears twice.'],
    ['{"kind": "x"}', 1, 'must not have a key “kind”'],
    [`{"a":\n 9007199254740993}`, 2, '9007199254740993 is a number that'],
    [`{"a":"${'x'.repeat(262_145 - 8)}"}`, 1, '262145 bytes; the limit is 262144.'],
    [`${'{"a":\n'.repeat(65)}1${'}'.repeat(65)}`, 65, 'the limit is 64'],
  ] as const) {
    await paste(page, editor, text)
    await page.getByRole('status').getByText(message).waitFor()
    await page.getByRole('button', { name: `Line ${line}`, exact: true }).click()
    expect(await page.getByRole('button', { name: 'Review changes' }).getAttribute('aria-disabled')).toBe(
      'true',
    )
    await page.keyboard.press('Control+s')
  }
  expect(sent.filter((body) => body.includes('cell_update'))).toEqual([])

  await paste(page, editor, '{"label": "Plan",\n"forbidden": true,\n"list": [1,\n2]}')
  await press(page, 'Review changes')
  await press(page, 'Save changes')
  await page.getByRole('status').getByText('No two here.').waitFor()
  await page.getByRole('button', { name: 'Line 4', exact: true }).waitFor()
  await look(page, 'cell-edit-refused')
  await press(page, 'Line 4')
  await paste(page, editor, '{"label": "Plan", "list": [1, 2]}')
  await press(page, 'Review changes')
  await press(page, 'Save changes')
  await page.getByText('version 2').waitFor()
})

it('notices that somebody has saved; a conflict while resolving asks again; arrays stay whole', async () => {
  const id = await make({ label: 'Plan', tags: [1], a: 1, b: 1 })
  const page = await person(test, ada.cookie)
  await page.clock.install()
  const editor = await edit(page, id)
  await paste(page, editor, '{"label": "Mine", "tags": [1, 2], "a": 2, "b": 1}')
  await ada.client.cell_update({ cell_id: id, data_patch: { tags: [1, 3] } })
  // The person comes back to the window after a while.
  await page.clock.fastForward(31_000)
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await page.getByText('ada saved version 2.').waitFor()
  expect(await editor.innerText()).toContain('"Mine"')
  await look(page, 'cell-edit-meanwhile')
  await press(page, 'Compare')
  await page.getByText('1 place changed on both sides').waitFor()
  await ada.client.cell_update({ cell_id: id, data_patch: { label: 'Theirs', b: 2 } })
  await page.getByLabel('Mine').check()
  await page.getByRole('dialog').getByRole('button', { name: 'Review changes' }).click()
  await press(page, 'Save changes')
  await page.getByRole('dialog').getByText('1 place changed on both sides').waitFor()
  await page.getByLabel('Theirs').check()
  await page.getByRole('dialog').getByRole('button', { name: 'Review changes' }).click()
  await press(page, 'Save changes')
  await page.getByText('version 4').waitFor()
  const { cell } = await ada.client.cell_get({ id })
  expect(cell.data).toEqual({ label: 'Theirs', tags: [1, 2], a: 2, b: 2 })
})

it('unsaved text: leaving asks; it outlives a session that ended, and nobody else sees it', async () => {
  const grace = await test.account({ username: 'grace' })
  const id = await make({ label: 'Plan' })
  await ada.client.cell_grant_create({
    cell_id: id,
    level: 'editor',
    principal: { actor_id: grace.actor_id },
  })
  const page = await person(test, (await test.sessions.create(ada.id)).cookie)
  let editor = await edit(page, id)
  const asked: string[] = []
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    void dialog.dismiss()
  })
  await paste(page, editor, '{"label": "unsaved words"}')
  await expect.poll(() => page.title()).toContain('•')
  for (const name of ['Home', 'Plan']) await page.getByRole('link', { name, exact: true }).click()
  await press(page, 'Cancel')
  expect(asked).toEqual(Array(3).fill('Leave without saving? Your changes will be lost.'))

  await signInAs(page, ada)
  await editor.waitFor()
  await page.getByText('This is your unsaved text.').waitFor()
  expect(await editor.innerText()).toContain('unsaved words')
  await look(page, 'cell-edit-kept')
  await signInAs(page, grace)
  await editor.waitFor()
  await expect.poll(() => editor.innerText()).toContain('Plan')
  expect(await page.evaluate(() => document.body.innerHTML)).not.toContain('unsaved words')
  expect(await page.getByText('your unsaved text').count()).toBe(0)
  editor = await edit(page, id)
  expect(await editor.innerText()).not.toContain('unsaved words')
})

it('what is typed for a new cell is dropped only after a question, and outlives a session that ended', async () => {
  const page = await person(test, (await test.sessions.create(ada.id)).cookie)
  const asked: string[] = []
  let isSure = false
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    return isSure ? dialog.accept() : dialog.dismiss()
  })
  await page.goto('/admin/cells?dialog=new')
  const data = page.getByLabel('Data')
  await data.fill('{"n": 1}')
  await page.keyboard.press('Escape')
  await expect.poll(() => asked).toEqual(['Leave without saving? Your changes will be lost.'])
  await page.keyboard.press('Escape')
  await expect.poll(() => asked.length).toBe(2)
  expect(await data.inputValue()).toBe('{"n": 1}')
  const form = page.getByRole('dialog')
  await form.getByLabel('Label').fill('Plan')
  await form.getByLabel('Kind').fill('note')
  await form.getByLabel('Anyone').check()
  await signInAs(page, ada)
  await expect.poll(() => data.inputValue()).toBe('{"n": 1}')
  await data.fill('{\n}')
  expect(await form.getByLabel('Label').inputValue()).toBe('Plan')
  expect(await form.getByLabel('Kind').inputValue()).toBe('note')
  expect(await form.getByLabel('Anyone').isChecked()).toBe(true)
  isSure = true
  await page.getByRole('button', { name: 'Cancel' }).click()
  await data.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'New cell' }).click()
  expect(await data.inputValue()).toBe('{\n}')
  await page.keyboard.press('Escape')
  await data.waitFor({ state: 'detached' })
  expect(asked.length).toBe(3)
})

it('unsaved text of several cells is kept when Back leaves them, and closing the tab asks', async () => {
  ada = await test.account({ username: 'hollerith' })
  const ids = [await make({ label: 'One' }), await make({ label: 'Two' })]
  const page = await person(test, ada.cookie)
  const open = async (at: number): Promise<Locator> => {
    await page.locator(`main a[href$="${ids[at]}"]`).click()
    await press(page, 'Edit')
    const editor = page.getByRole('textbox', { name: 'JSON of the cell' })
    await isIn(editor)
    return editor
  }
  await page.goto('/admin/cells')
  for (const at of [0, 1]) {
    await paste(page, await open(at), `{"label": "unsaved words ${at}"}`)
    await expect.poll(() => page.title()).toContain('•')
    await page.goBack()
    await page.getByRole('heading', { name: 'Cells' }).waitFor()
  }
  const asked: string[] = []
  page.on('dialog', (dialog) => {
    asked.push(dialog.type())
    void dialog.dismiss()
  })
  await page.close({ runBeforeUnload: true })
  await expect.poll(() => asked).toEqual(['beforeunload'])
  for (const at of [0, 1]) {
    expect(await (await open(at)).innerText()).toContain(`unsaved words ${at}`)
    await page.goBack()
  }
})

it('says why nothing was saved, and keeps what was typed if it may no longer be saved', async () => {
  ada = await test.account({ username: 'babbage' })
  const root = await test.account({ username: 'root', roles: ['admin'] })
  const hopper = await test.account({ username: 'hopper', roles: ['admin'] })
  const id = await make({ label: 'Plan' })
  await ada.client.cell_grant_create({
    cell_id: id,
    level: 'viewer',
    principal: { actor_id: hopper.actor_id },
  })
  const page = await person(test, hopper.cookie)
  const editor = await edit(page, id)
  await paste(page, editor, '{"label": "unsaved words"}')
  await ada.client.cell_update({ cell_id: id, data: { label: 'Theirs' } })
  await press(page, 'Review changes')
  await page.route('**/api/rpc', (route) =>
    route.request().postDataJSON().method === 'cell_get' ? route.abort() : route.continue(),
  )
  await press(page, 'Save changes')
  await page.getByRole('alert').getByText('The server did not answer').first().waitFor()
  await page.unroute('**/api/rpc')
  await press(page, 'Back')
  const { actors } = await root.client.admin_account_get({ account_id: hopper.id })
  await root.client.role_grant_revoke({
    actor_id: hopper.actor_id,
    role_grant_id: actors[0]?.role_grants[0]?.id ?? '',
  })
  await page.getByText('You can no longer edit this cell.').waitFor()
  expect(await editor.innerText()).toContain('unsaved words')
})

it('keys that every object inherits survive view, review, merge and save; the largest cell opens and takes a key', async () => {
  ada = await test.account({ username: 'lovelace' })
  const id = await make(JSON.parse('{"label": "Odd", "__proto__": {"x": 1}, "constructor": 2}'))
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${id}`)
  await page.getByText('__proto__').waitFor()
  const editor = await edit(page, id)
  expect(await editor.innerText()).toContain('"__proto__"')
  await paste(page, editor, '{"label": "Odd", "__proto__": {"x": 2}, "constructor": 2}')
  await ada.client.cell_update({
    cell_id: id,
    data_patch: JSON.parse('{"constructor": {"prototype": 1}, "__proto__": {"y": 1}}'),
  })
  await press(page, 'Review changes')
  await page.getByText('/__proto__/x').waitFor()
  await press(page, 'Save changes')
  await page.getByText('both are kept').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Review changes' }).click()
  await press(page, 'Save changes')
  await page.getByText('version 3').waitFor()
  const { cell } = await ada.client.cell_get({ id })
  expect(JSON.stringify(cell.data, ['label', '__proto__', 'x', 'y', 'constructor', 'prototype'])).toBe(
    JSON.stringify(
      JSON.parse('{"label": "Odd", "__proto__": {"x": 2, "y": 1}, "constructor": {"prototype": 1}}'),
      ['label', '__proto__', 'x', 'y', 'constructor', 'prototype'],
    ),
  )

  const large = await make({ label: 'Large', all: Array.from({ length: 87_000 }, (_, n) => n % 10) })
  await edit(page, large)
  await page.keyboard.press('Control+Home')
  await page.keyboard.type('x')
  await page.getByRole('button', { name: 'Line 1', exact: true }).waitFor()
  const deep = await make(JSON.parse(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`))
  await edit(page, deep)
  expect(await page.getByRole('button', { name: 'Review changes' }).getAttribute('aria-disabled')).toBeNull()
})

it('counts what a copy or a deletion affects, and asks for the name if others are affected', async () => {
  const [book, page1] = [await make({ label: 'Book' }), await make({ label: 'Page' })]
  await ada.client.cell_item_insert({ parent_id: book, child_id: page1, position: '1' })
  const page = await person(test, ada.cookie)
  const menu = async (item: string): Promise<void> => {
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }
  await page.goto(`/admin/cells/${book}`)
  await menu('Copy cell')
  await page.getByText('Copies 1 cell').waitFor()
  await page.getByRole('dialog').getByLabel('Label').fill('Book of today')
  await page.getByLabel('Copy what it links to as well').check()
  await page.getByText('Copies 2 cells that you can see, 2 levels').waitFor()
  await look(page, 'cell-clone')
  await page.getByRole('dialog').getByRole('button', { name: 'Copy cell' }).click()
  await page.getByText('Cell copied.').waitFor()
  await page.getByRole('heading', { name: 'Book of today' }).waitFor()
  expect((await ada.client.cell_get({ id: book })).cell.data.label).toBe('Book')
  expect((await ada.client.cell_list({})).cells.filter(({ data }) => data.label === 'Page')).toHaveLength(2)

  const deep = await make({ label: 'Deep' })
  await chain(test, deep, 33, ada.actor_id)
  await page.goto(`/admin/cells/${deep}`)
  await menu('Copy cell')
  await page.getByText('Copies 1 cell').waitFor()
  const whole = page.getByLabel('Copy what it links to as well')
  await whole.check()
  await page.getByText('Too much for one copy: at most 32 levels.').first().waitFor()
  const copy = page.getByRole('dialog').locator('button[type=submit]')
  expect(await copy.getAttribute('aria-disabled')).toBe('true')
  await look(page, 'cell-clone-refused')
  await whole.uncheck()
  await page.getByText('Copies 1 cell').waitFor()
  // The tree grows between the count and the copy.
  await whole.press('Escape')
  const wide = await make({ label: 'Wide' })
  await children(test, wide, 999, ada.actor_id)
  await page.goto(`/admin/cells/${wide}`)
  await menu('Copy cell')
  await whole.check()
  await page.getByText('Copies 1,000 cells that you can see').waitFor()
  const child_id = await make({ label: 'One more' })
  await ada.client.cell_item_insert({ parent_id: wide, child_id, position: 'z' })
  await copy.click()
  await page.getByRole('alert').getByText('Too much for one copy: at most 1,000 cells.').waitFor()
  await whole.uncheck()
  await copy.click()
  await page.getByText('Cell copied.').waitFor()

  await page.goto(`/admin/cells/${page1}`)
  await menu('Delete cell')
  await page.getByText('It is linked from 1 cell that you can see.').waitFor()
  const remove = page.getByRole('dialog').getByRole('button', { name: /^Delete for good/ })
  expect(await remove.getAttribute('aria-disabled')).toBe('true')
  await look(page, 'cell-delete')
  await page.getByLabel('Type Page to confirm').fill('Page')
  await page.keyboard.press('Enter')
  await page.getByText('Cell deleted.').waitFor()
  await page.goto(`/admin/cells/${book}`)
  const elsewhere = await person(test, ada.cookie)
  await elsewhere.clock.install()
  await elsewhere.goto(`/admin/cells/${book}`)
  await elsewhere.getByRole('heading', { name: 'Book' }).waitFor()
  await menu('Delete cell')
  await page.getByText('There is no undo.').waitFor()
  expect(await page.getByRole('dialog').getByRole('textbox').count()).toBe(0)
  await remove.click()
  await page.getByText('Cell deleted.').waitFor()
  await elsewhere.clock.fastForward(31_000)
  await elsewhere.evaluate(() => dispatchEvent(new Event('focus')))
  await elsewhere.getByRole('heading', { name: 'No such cell' }).waitFor()
})

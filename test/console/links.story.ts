import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'
import { cellRow, fieldRow, itemRow } from '../helpers/cell-rows.ts'
import { consoleService, look, person } from './browser.ts'
import { hasFocus, isSomewhere, press, tabTo } from './keys.ts'

type Account = Awaited<ReturnType<TestService['account']>>
let test: TestService
let ada: Account
beforeAll(async () => {
  test = await consoleService()
  ada = await test.account({ username: 'ada' })
})
afterAll(() => test[Symbol.asyncDispose]())

const make = async (label: string) => (await ada.client.cell_create({ data: { label } })).cell.id
const withItems = async (...labels: string[]) => {
  const parent_id = await make('Book')
  for (const [at, label] of labels.entries())
    await ada.client.cell_item_insert({ parent_id, child_id: await make(label), position: `${at + 1}` })
  return parent_id
}
const shown = (page: Page): Promise<string[]> =>
  page
    .locator('.items li')
    .evaluateAll((all) =>
      all
        .toSorted((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
        .map((one) => one.querySelector('a')?.textContent ?? ''),
    )
/** In the order of the service, which is by bytes. */
async function stored(parent_id: string): Promise<string[]> {
  const { items } = await ada.client.cell_item_list({ parent_id })
  const { cells } = await ada.client.cell_list({ ids: items.map(({ child_id }) => child_id) })
  expect(items.map(({ position }) => position)).toEqual(items.map(({ position }) => position).toSorted())
  return items.map(({ child_id }) => {
    const data = cells.find(({ id }) => id === child_id)?.data as { label: string } | undefined
    return data?.label ?? ''
  })
}
async function middleOf(of: Locator): Promise<{ x: number; y: number }> {
  const box = await of.boundingBox()
  if (!box) throw new Error('not on screen')
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
}
const ring = (of: Locator) => of.evaluate((own) => getComputedStyle(own).outlineStyle)
const handle = (page: Page, n: number) => page.getByRole('button', { name: new RegExp(`^Move item ${n} of`) })

it('items move by mouse, by touch and by keys, are announced, and go back', async () => {
  const book = await withItems('one', 'two', 'three', 'four')
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${book}/items`)
  await page.getByRole('link', { name: 'four' }).waitFor()
  const from = await middleOf(handle(page, 4))
  const to = await middleOf(handle(page, 1))
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  await page.mouse.move(to.x, to.y + 20, { steps: 4 })
  await page.mouse.move(to.x, to.y - 20, { steps: 4 })
  expect(await shown(page)).toEqual(['four', 'one', 'two', 'three'])
  await look(page, 'items-lifted')
  await page.mouse.up()
  await page.getByRole('button', { name: 'Undo' }).waitFor()
  expect(await stored(book)).toEqual(['four', 'one', 'two', 'three'])
  expect(await shown(page)).toEqual(['four', 'one', 'two', 'three'])
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(() => stored(book)).toEqual(['one', 'two', 'three', 'four'])
  await expect.poll(() => shown(page)).toEqual(['one', 'two', 'three', 'four'])

  // By keys only, from the top of the page.
  await page.reload()
  await press(handle(page, 1), 'Space')
  await page.getByText('Lifted. Item 1 of 4.').waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.getByText('Item 3 of 4.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByText('Not moved. Item 1 of 4.').waitFor()
  await hasFocus(handle(page, 1))
  await page.keyboard.press('Space')
  await page.keyboard.press('End')
  await page.keyboard.press('Space')
  await page.getByText('Dropped. Item 4 of 4.').waitFor()
  await expect.poll(() => stored(book)).toEqual(['two', 'three', 'four', 'one'])
  await hasFocus(handle(page, 4))
  expect(await ring(handle(page, 4))).toBe('solid')
  // Back to the previous handle, and that item one place up.
  for (let n = 0; n < 3; n++) await page.keyboard.press('Shift+Tab')
  await hasFocus(handle(page, 3))
  for (const key of ['Space', 'ArrowUp', 'Space']) await page.keyboard.press(key)
  await expect.poll(() => stored(book)).toEqual(['two', 'four', 'three', 'one'])
  await hasFocus(handle(page, 2))
  // Leaving the handle while an item is lifted puts the item back.
  await page.keyboard.press('Space')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Tab')
  await page.getByText('Not moved. Item 2 of 4.').waitFor()
  await hasFocus(page.getByRole('link', { name: 'four', exact: true }))
  // The menu does the same.
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await hasFocus(page.getByRole('menuitem', { name: 'Move up' }))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect.poll(() => stored(book)).toEqual(['two', 'three', 'four', 'one'])
  await isSomewhere(page)

  const phone = await person(test, ada.cookie, { width: 390, height: 844, touch: true })
  await phone.goto(`/admin/cells/${book}/items`)
  await phone.getByRole('link', { name: 'one' }).waitFor()
  const touch = await phone.context().newCDPSession(phone)
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', at?: { x: number; y: number }) =>
    touch.send('Input.dispatchTouchEvent', { type, touchPoints: at ? [at] : [] })
  const [start, end] = [await middleOf(handle(phone, 1)), await middleOf(handle(phone, 3))]
  await send('touchStart', start)
  for (const part of [0.3, 0.6, 1.1])
    await send('touchMove', { x: start.x, y: start.y + (end.y - start.y) * part })
  await send('touchEnd')
  await expect.poll(() => stored(book)).toEqual(['three', 'four', 'two', 'one'])
})

it('two people move at once, and a hidden item has the place: every item is kept, in order', async () => {
  const grace = await test.account({ username: 'grace' })
  const book = await withItems('one', 'two', 'three')
  // The shortest position between `1` and `2` is `1V`, which is taken by an item of somebody else.
  const hidden = await cellRow(test, { created_by: grace.actor_id, visibility: 'private' })
  await itemRow(test, book, '1V', hidden)
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${book}/items`)
  await page.getByRole('link', { name: 'three' }).waitFor()
  expect(await page.locator('.items li').count()).toBe(3)
  // Another window has moved an item.
  await ada.client.cell_item_move({ parent_id: book, position: '2', new_position: '5' })
  await tabTo(handle(page, 3))
  for (const key of ['Space', 'ArrowUp', 'Space']) await page.keyboard.press(key)
  await page.getByText('Item 2 of 3.', { exact: true }).last().waitFor()
  await expect.poll(() => stored(book)).toEqual(['one', 'three', 'two'])
  await expect.poll(() => shown(page)).toEqual(['one', 'three', 'two'])
  const { items } = await ada.client.cell_item_list({ parent_id: book })
  expect(items[1]?.position).toBe('1F')

  // An item that is gone cannot be moved: the page says so, and reads the list again.
  await ada.client.cell_item_delete({ parent_id: book, position: '5' })
  await tabTo(handle(page, 3))
  for (const key of ['Space', 'Home', 'Space']) await page.keyboard.press(key)
  await page.getByRole('alert').getByText('no such cell').waitFor()
  await expect.poll(() => shown(page)).toEqual(['one', 'three'])
  await page.locator('.items li').first().getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  await expect.poll(() => stored(book)).toEqual(['three'])
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(() => stored(book)).toEqual(['one', 'three'])
})

it('relations: to itself, in a circle, hundreds, without hidden ones; removed by key and undone', async () => {
  const grace = await test.account({ username: 'hopper' })
  const [book, author, shelf] = [await make('Handbook'), await make('Ada'), await make('Shelf')]
  const set = (source_id: string, name: string, target_id: string) =>
    ada.client.cell_field_set({ source_id, name, target_id })
  await set(book, 'itself', book)
  await set(book, 'author', author)
  await set(author, 'wrote', book)
  await ada.client.cell_item_insert({ parent_id: shelf, child_id: book, position: '1' })
  const hidden = await cellRow(test, { created_by: grace.actor_id, visibility: 'private' })
  await fieldRow(test, book, 'secret', hidden)
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${book}/relations`)
  const graph = page.getByRole('img', { name: '3 cells before, 2 cells after this one' })
  await graph.waitFor()
  await page.getByRole('heading', { name: 'Contains it as an item' }).waitFor()
  expect(await page.locator('main').innerText()).not.toContain('secret')
  expect(await graph.locator('g').count()).toBe(5)
  await look(page, 'cell-relations-graph')
  const list = page.locator('section', { has: page.getByRole('heading', { name: 'Leads to' }) })
  await tabTo(list.getByRole('link', { name: 'Ada' }))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Delete')
  await page.getByText('Relation removed.').waitFor()
  await expect.poll(() => list.getByRole('listitem').count()).toBe(1)
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('A')
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(() => list.getByRole('listitem').count()).toBe(2)
  await graph.getByText('Shelf').click()
  await page.getByRole('heading', { name: 'Shelf' }).waitFor()

  await page.goto(`/admin/cells/${book}/relations`)
  await page.getByRole('button', { name: 'Remove author' }).click()
  await page.getByRole('button', { name: 'Undo' }).waitFor()
  await page.route('**/api/rpc', (route) =>
    route.request().postDataJSON().method === 'cell_field_set' ? route.abort() : route.continue(),
  )
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('status').getByText('The server did not answer').waitFor()

  const hub = await make('Hub')
  await test.service.app.db.run(sql`
    with made as (
      insert into cell (data, data_bytes, visibility, created_by)
      select '{}'::jsonb, 2, 'private', ${ada.actor_id}::uuid from generate_series(1, 501) returning id
    ), numbered as (select id, row_number() over (order by id) as n from made),
    fields as (insert into cell_field (source_id, name, target_id) select ${hub}::uuid, 'field_' || n, id from numbered)
    insert into cell_item (parent_id, position, child_id) select ${hub}::uuid, (1000 + n)::text, id from numbered`)
  await page.goto(`/admin/cells/${hub}/relations`)
  await page.getByText('+ 188 or more, below').waitFor()
  expect(await page.getByRole('img').locator('g').count()).toBe(12)
  for (const shown of [388, 489]) {
    await page.getByRole('button', { name: 'Show more', exact: true }).click()
    await page.getByText(new RegExp(`^\\+ ${shown}( or)? more, below`)).waitFor()
  }
  // The tabs count to 500; the list goes on, and says how much of it is shown.
  await page.getByRole('link', { name: 'Relations 500+' }).waitFor()
  await page.getByRole('link', { name: 'Items 500+' }).click()
  const add = page.getByRole('button', { name: 'Add item' })
  for (const [shown, after] of [
    [200, 400],
    [400, 501],
  ]) {
    await page.getByText(`Only the first ${shown} are shown.`).waitFor()
    // A new item goes to the end, which is not loaded yet.
    expect(await add.getAttribute('aria-disabled')).toBe('true')
    await page.getByRole('button', { name: 'Show more', exact: true }).click()
    await expect.poll(() => page.locator('.items li').count()).toBe(after)
  }
  expect(await page.getByText('Only the first').count()).toBe(0)
  await page.getByRole('combobox').fill(await make('Last'))
  await expect.poll(() => add.getAttribute('aria-disabled')).toBe(null)
})

it('an item far down a long list is moved, removed and put back there, and the handle keeps the focus', async () => {
  const book = await withItems('last')
  const child = await make('page')
  for (let n = 0; n < 620; n++) await itemRow(test, book, `0${n.toString(36).padStart(2, '0')}V`, child)
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${book}/items`)
  const more = page.getByRole('button', { name: 'Show more', exact: true })
  for (let n = 1; n < 4; n++) {
    await page.getByText(`Only the first ${n * 200} are shown.`).waitFor()
    await more.click()
  }
  await handle(page, 621).focus()
  for (const key of ['Space', 'ArrowUp', 'ArrowUp', 'Space']) await page.keyboard.press(key)
  const undo = page.getByRole('button', { name: 'Undo' })
  await undo.waitFor()
  await hasFocus(handle(page, 619))
  const isAt = async (n: number): Promise<void> => {
    await expect.poll(() => page.locator('.items li').count()).toBe(621)
    await expect
      .poll(() =>
        page
          .locator('.items li')
          .nth(n - 1)
          .innerText(),
      )
      .toContain('last')
  }
  await isAt(619)
  await undo.click()
  await isAt(621)
  await page.locator('.items li').last().getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  await expect.poll(() => page.locator('.items li').count()).toBe(620)
  await undo.click()
  await isAt(621)
})

import type { Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { consoleService, look, person, violations } from './browser.ts'
import { tabTo } from './keys.ts'

it('cells at 320 pixels, enlarged, in forced colours, with long words and from right to left', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  const label = `${'Donaudampfschifffahrtsgesellschaft'.repeat(4)} مرحبا`
  const { cell } = await ada.client.cell_create({ data: { label, ['k'.repeat(200)]: 'v'.repeat(900) } })
  const child_id = (await ada.client.cell_create({ data: { label: 'w'.repeat(300) } })).cell.id
  await ada.client.cell_item_insert({ parent_id: cell.id, child_id, position: '1' })
  await ada.client.cell_field_set({ source_id: cell.id, name: 'n'.repeat(64), target_id: child_id })
  const page = await person(test, ada.cookie, { width: 320, height: 640 })
  const pages = ['', '?edit=1', '/relations', '/items', '/sharing']
  for (const part of pages) {
    // At 400 % zoom, 1280 pixels are as wide as 320.
    for (const dir of ['ltr', 'rtl']) {
      await page.goto(`/admin/cells/${cell.id}${part}`)
      await page.evaluate((dir) => document.documentElement.setAttribute('dir', dir), dir)
      if (part === '?edit=1') await page.getByRole('textbox', { name: 'JSON of the cell' }).waitFor()
      else await page.getByRole('link', { name: 'Data', exact: true }).waitFor()
      await page.waitForLoadState('networkidle')
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      expect.soft(wider, `${part} ${dir}`).toBeLessThanOrEqual(0)
      expect.soft(await violations(page), `${part} ${dir}`).toEqual([])
    }
  }
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
  await page.goto(`/admin/cells/${cell.id}/items`)
  const handle = page.getByRole('button', { name: 'Move item 1 of 1' })
  await tabTo(handle)
  const outline = await handle.evaluate((own) => getComputedStyle(own).outlineStyle)
  expect(outline).toBe('solid')
  await look(page, 'items-forced')
})

it('what is chosen looks other than the rest in forced colours, too', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie, { width: 900 })
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
  const differ = async (of: Locator, change: () => Promise<unknown>): Promise<void> => {
    const before = await of.screenshot()
    await change()
    expect(before.equals(await of.screenshot()), `${of}`).toBe(false)
  }
  await page.goto('/admin/settings')
  const signUp = page.getByRole('switch')
  await differ(signUp, () => signUp.evaluate((own) => Object.assign(own, { checked: true })))
  await differ(page.locator('.rail').getByRole('link', { name: 'Settings' }).first(), async () => {
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  })
  const select = page.getByRole('combobox', { name: 'Result' })
  expect(await select.evaluate((own) => getComputedStyle(own).appearance)).toBe('auto')
  await page.keyboard.press('Control+k')
  const first = page.getByRole('dialog').getByRole('option').first()
  await first.waitFor()
  await differ(first, () => page.keyboard.press('ArrowDown'))
})

it('each part of a page has a title of its own', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  for (const [path, title] of [
    [`/cells/${cell.id}`, 'Plan'],
    [`/cells/${cell.id}/sharing`, 'Sharing, Plan'],
    [`/people/${ada.id}/sessions`, 'Sessions, ada'],
    ['/inbox/history', 'History, Inbox'],
    ['/audit/live', 'Live, Audit log'],
    ['/me/tokens', 'Tokens, My account'],
  ] as const) {
    await page.goto(`/admin${path}`)
    await expect.poll(() => page.title()).toBe(`${title} · Cellkeep`)
  }
})

it('lists, comboboxes, the editor and the handles are named in the accessibility tree', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const { cell } = await ada.client.cell_create({ data: { label: 'Book', tags: ['a'] } })
  for (const position of ['1', '2'])
    await ada.client.cell_item_insert({
      parent_id: cell.id,
      child_id: (await ada.client.cell_create({ data: { label: `Page ${position}` } })).cell.id,
      position,
    })
  const page = await person(test, ada.cookie)
  const tree = () => page.locator('main').ariaSnapshot()
  await page.goto(`/admin/cells/${cell.id}`)
  await page.getByRole('tree', { name: 'Data' }).waitFor()
  expect(await tree()).toMatch(
    /heading "Book" \[level=1\].*navigation "Parts of the cell".*tree "Data".*tags/s,
  )
  await page.goto(`/admin/cells/${cell.id}/items`)
  await page.getByRole('link', { name: 'Page 2' }).waitFor()
  expect(await tree()).toMatch(
    /list:.*button "Move item 1 of 2".*link "Page 1".*button "More actions".*button "Move item 2 of 2"/s,
  )
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Command palette', expanded: true }).waitFor()
  expect(await page.getByRole('dialog').ariaSnapshot()).toMatch(
    /combobox "Command palette".*listbox "Command palette".*option "[^"]+" \[selected\]/s,
  )
  await page.keyboard.press('Escape')
  await page.goto(`/admin/cells/${cell.id}?edit=1`)
  const editor = page.getByRole('textbox', {
    name: /^JSON of the cell\. Tab indents; Escape, then Tab leaves/,
  })
  await editor.waitFor()
  expect(await editor.getAttribute('aria-multiline')).toBe('true')
})

it('what pickers and the palette suggest fits a phone, however long its name and path', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'a'.repeat(39), roles: ['admin'] })
  const path = `/${'p'.repeat(200)}`
  const { cell } = await ada.client.cell_create({ data: { label: 'l'.repeat(300) } })
  await ada.client.cell_update({ cell_id: cell.id, path })
  const page = await person(test, ada.cookie, { width: 360, height: 740 })
  const fits = async (name: string): Promise<void> => {
    await page.getByRole('option').first().waitFor()
    const wider = await page.evaluate(() => [
      document.documentElement.scrollWidth - innerWidth,
      ...[...document.querySelectorAll('[role=option], [role=option] > *')]
        .map((one) => Math.ceil(one.getBoundingClientRect().right - innerWidth))
        .filter((by) => by > 0),
    ])
    expect.soft([name, ...wider]).toEqual([name, 0])
  }
  await page.goto(`/admin/cells/${cell.id}/relations`)
  await page.getByRole('combobox', { name: 'Other cell' }).fill('/p')
  await fits('cells')
  await page.goto(`/admin/cells/${cell.id}/why`)
  await page.getByRole('combobox').first().fill('aa')
  await fits('people')
  for (const text of ['/p', 'aa']) {
    await page.goto('/admin')
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Command palette' }).fill(text)
    await fits(`palette ${text}`)
  }
})

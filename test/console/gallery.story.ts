import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, expect, it } from 'vitest'
import type { TestService } from '../../src/testing/index.ts'
import { look, person } from './browser.ts'
import { fill, fillTime, press, tabTo } from './keys.ts'

// Only for tests: the kit alone, under the policy of the console and without a service.
const folder = await mkdtemp(join(tmpdir(), 'gallery-'))
await build({
  configFile: false,
  root: fileURLToPath(new URL('gallery/', import.meta.url)),
  base: '/admin/',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: folder,
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
const types: Record<string, string> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
const server = createServer(async ({ url = '' }, reply) => {
  const path = url.replace('/admin', '').replace(/\?.*/, '').replace(/^\/?$/, '/index.html')
  const bytes = await readFile(folder + path).catch(() => undefined)
  reply.setHeader('content-type', types[extname(path)] ?? 'text/html')
  reply.setHeader(
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; require-trusted-types-for 'script'; trusted-types 'none'",
  )
  reply.writeHead(bytes ? 200 : 404).end(bytes)
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true })
})

const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function gallery(): Promise<Page> {
  const page = await person({ url } as TestService)
  await page.clock.setFixedTime('2026-11-22T09:00:00Z')
  await page.goto('/admin/')
  await page.getByRole('heading', { name: 'Gallery' }).waitFor()
  return page
}
const focusedLabel = (page: Page) =>
  page.evaluate(() => (document.activeElement as HTMLInputElement).labels?.[0]?.textContent)
const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')

it('every part of the kit in light, dark and on a phone', async () => {
  const page = await gallery()
  await look(page, 'gallery')
  for (const name of ['confirm', 'name', 'text', 'secret']) {
    await page.getByRole('button', { name: `Open ${name}` }).click()
    await look(page, `gallery-${name}`)
    if (name === 'secret') await page.getByLabel('I have stored it').check()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  for (const kind of ['plain', 'primary', 'danger'])
    await page.getByRole('button', { name: kind, exact: true }).click()
  await look(page, 'gallery-toasts')
})

it('buttons and fields by keyboard: a disabled one says why and does nothing', async () => {
  const page = await gallery()
  await press(page.getByRole('button', { name: 'plain', exact: true }))
  await page.getByText('Pressed plain').waitFor()
  for (const name of ['busy', 'disabled It rains', 'Again in 42 s'])
    await press(page.getByRole('button', { name }))
  expect(await page.getByText('It was off').count()).toBe(0)
  await tabTo(page.getByLabel('Wrong'))
  const described = await page.evaluate(() => {
    const ids = document.activeElement?.getAttribute('aria-describedby')?.split(' ') ?? []
    return ids.map((id) => document.getElementById(id)?.textContent)
  })
  expect(described).toEqual(['Write something.'])
  await tabTo(page.getByRole('radio', { name: /One/ }))
  await page.keyboard.press('ArrowDown')
  expect(await page.getByRole('radio', { name: /Two/ }).isChecked()).toBe(true)
  expect(await page.getByLabel('Select').inputValue()).toBe('two')
  await press(page.getByRole('switch'), 'Space')
  expect(await page.getByLabel('Checkbox').isChecked()).toBe(true)
  await fill(page.getByLabel('Password', { exact: true }), 'a secret')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('type')).toBe('text')
  await page.getByText('Europe/Berlin · 2026-11-22 08:14 UTC').waitFor()
  await tabTo(page.getByLabel('Ends', { exact: true }))
  await page.keyboard.type('Custom')
  await fillTime(page.getByLabel('Ends at'), '2026-11-22T09:59')
  await page.getByText('Choose a time in the future.').waitFor()
  await page.keyboard.press('ArrowUp')
  await page.getByText('Choose a time in the future.').waitFor({ state: 'detached' })
})

it('dialogs, menus, rows and trees by keyboard: focus goes in, stays in and comes back', async () => {
  const page = await gallery()
  const opener = page.getByRole('button', { name: 'Open confirm' })
  await press(opener)
  await expect.poll(() => focused(page)).toBe('Cancel')
  for (let n = 0; n < 6; n++) {
    await page.keyboard.press('Tab')
    expect(
      await page.evaluate(() => document.activeElement?.closest('main > *, dialog')?.tagName ?? 'BODY'),
    ).toMatch(/DIALOG|BODY/)
  }
  await page.keyboard.press('Escape')
  await expect.poll(() => focused(page)).toBe('Open confirm')

  await press(page.getByRole('button', { name: 'Open name' }))
  await fill(page.getByLabel('Type grace to confirm'), 'grac')
  await page.keyboard.press('Enter')
  expect(await page.getByText('Deleted').count()).toBe(0)
  await page.keyboard.type('e')
  await page.keyboard.press('Enter')
  await page.getByText('Deleted').waitFor()
  await expect.poll(() => focused(page)).toBe('Open name')

  await press(page.getByRole('button', { name: 'Open text' }))
  await page.getByRole('textbox', { name: 'Name', exact: true }).and(page.locator('dialog :focus')).waitFor()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('grace')
  await page.keyboard.press('Enter')
  await page.getByText('Now grace').waitFor()

  await press(page.getByRole('button', { name: 'Open secret' }))
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name: 'Close without storing it?' }).waitFor()
  await press(page.getByRole('button', { name: 'Go back' }))
  await press(page.getByLabel('I have stored it'), 'Space')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await expect.poll(() => focused(page)).toBe('Open secret')

  await press(page.getByRole('button', { name: 'Menu' }))
  await expect.poll(() => focused(page)).toBe('First')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  expect(await focused(page)).toBe('Third')
  await page.keyboard.press('Enter')
  await page.getByText('Third chosen').waitFor()
  expect(await page.getByText('It was off').count()).toBe(0)

  await tabTo(page.getByRole('link', { name: 'ada' }))
  await page.keyboard.press('j')
  await page.keyboard.press('ArrowDown')
  expect(await focused(page)).toBe('grace')
  await page.keyboard.press('k')
  expect(await focused(page)).toBe('bob')

  // The tree is one tab stop: Tab leaves it, and comes back to the same item.
  const item = (name: string) => page.getByRole('treeitem', { name, exact: true })
  await item('deep {1}').waitFor()
  await tabTo(item('label Handbook'))
  await page.keyboard.press('End')
  expect(await focused(page)).toBe('nonenull')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowRight')
  await item('deeper true').waitFor()
  expect(await focused(page)).toBe('deep{1}')
  await page.keyboard.press('ArrowLeft')
  await item('deeper true').waitFor({ state: 'detached' })
  await page.keyboard.press('ArrowLeft')
  expect(await focused(page)).toBe('meta{1}')
  await page.keyboard.press('ArrowLeft')
  await item('deep {1}').waitFor({ state: 'detached' })
  expect(await focused(page)).toBe('meta{1}')
  await page.keyboard.press('Enter')
  await item('deep {1}').waitFor()
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.closest('.tree'))).toBeNull()
  await page.keyboard.press('Shift+Tab')
  expect(await focused(page)).toBe('meta{1}')
  await page.keyboard.press('Home')
  expect(await focused(page)).toBe('labelHandbook')
  expect(await page.getByRole('tree', { name: 'Tree' }).ariaSnapshot()).toContain(
    'treeitem "meta {1}" [expanded] [level=1]',
  )
})

it('a long list whose rows have other heights than expected scrolls without a jump', async () => {
  const page = await person({ url } as TestService)
  await page.goto('/admin/?long')
  await page.getByRole('link', { name: 'row 3', exact: true }).waitFor()
  const row = page.getByRole('row')
  expect(await row.count()).toBeLessThan(60)
  const topOf = (name: string) =>
    page.evaluate(
      (name) =>
        [...document.querySelectorAll('.row-link')]
          .find(({ textContent }) => textContent === name)
          ?.getBoundingClientRect().top,
      name,
    )
  const settled = () => page.waitForTimeout(400)
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight / 2))
  await settled()
  // Upwards, over rows that were never drawn, each step moves what is on screen by exactly the step.
  const moves = await page.evaluate(async () => {
    const found: number[] = []
    const linkOnScreen = () =>
      [...document.querySelectorAll('.row-link')].find((link) => link.getBoundingClientRect().top > 200)
    for (let step = 0; step < 60; step++) {
      const link = linkOnScreen()
      const before = link?.getBoundingClientRect().top ?? 0
      scrollBy(0, -90)
      await new Promise(requestAnimationFrame)
      await new Promise(requestAnimationFrame)
      found.push((link?.getBoundingClientRect().top ?? 0) - before)
    }
    return found
  })
  expect([...new Set(moves.map(Math.round))]).toEqual([90])
  const shown = await page.evaluate(
    () =>
      [...document.querySelectorAll('.row-link')].find((link) => link.getBoundingClientRect().top > 200)
        ?.textContent ?? '',
  )
  const before = await topOf(shown)
  await settled()
  expect(Math.abs(((await topOf(shown)) ?? 0) - (before ?? 0))).toBeLessThan(1)
  await page.evaluate(() => scrollTo(0, 0))
  await settled()
  const gap = await page.evaluate(() => {
    const [head, first] = document.querySelectorAll('[role=row]')
    return (first?.getBoundingClientRect().top ?? 0) - (head?.getBoundingClientRect().bottom ?? 0)
  })
  expect(gap).toBe(0)
  expect(await topOf('row 0')).toBeGreaterThan(0)
  // The end moves away as the rows before it turn out to be higher.
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 })
    await page.evaluate(() => scrollTo(0, 0))
    await settled()
    await page.keyboard.press('End')
    await expect.poll(() => topOf('row 4999')).toBeLessThan(800)
  }
})

it('a row keeps the focus however far the list is scrolled away from it', async () => {
  const page = await person({ url } as TestService)
  await page.goto('/admin/?long')
  await tabTo(page.getByRole('link', { name: 'row 0', exact: true }))
  for (let n = 0; n < 12; n++) await page.keyboard.press('ArrowDown')
  for (const share of [0.1, 0.5, 1, 0.3]) {
    await page.evaluate((share) => scrollTo(0, document.documentElement.scrollHeight * share), share)
    await page.waitForTimeout(200)
    expect(await focused(page)).toBe('row 12')
  }
  await page.keyboard.press('ArrowDown')
  expect(await focused(page)).toBe('row 13')
  await expect(page.getByRole('link', { name: 'row 20', exact: true }).waitFor()).resolves.toBeUndefined()
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  expect(await focused(page)).toBe('row 11')
})

it('a text that is too long is kept and marked, and nothing is sent', async () => {
  const page = await gallery()
  const ten = page.getByRole('textbox', { name: 'At most ten' })
  await ten.focus()
  await page.keyboard.insertText('a pasted text')
  await page.getByText('13 characters; the limit is 10.').waitFor()
  expect(await page.getByText('13 characters; the limit is 12.').count()).toBe(1)
  expect(await ten.inputValue()).toBe('a pasted text')
  expect(await ten.getAttribute('aria-invalid')).toBe('true')
  const send = page.getByRole('button', { name: 'Send', exact: true })
  await send.click()
  await expect.poll(() => focusedLabel(page)).toBe('At most ten')
  await ten.fill(' the end  ')
  await send.click()
  await page.locator('.toast').getByText('Sent').waitFor()
  expect(await page.getByText('characters; the limit is').count()).toBe(0)
})

it('the full form of a time is reached by key and touch, too', async () => {
  const page = await gallery()
  const time = page.getByRole('button', { name: '46m ago' })
  await press(time)
  const whole = page.locator('.tip:popover-open')
  await expect.poll(() => whole.innerText()).toBe('2026-11-22 09:14 (2026-11-22 08:14 UTC)')
  await page.keyboard.press('Escape')
  await expect.poll(() => whole.count()).toBe(0)
  expect(await focused(page)).toBe('46m ago')
})

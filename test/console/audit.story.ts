import { readFile } from 'node:fs/promises'
import type { Page, Request } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { exportAudit } from '../../src/audit-log/audit_export.ts'
import { sql } from '../../src/db/db.ts'
import type { TestAccount } from '../../src/testing/index.ts'
import { auditRows } from '../helpers/audit-rows.ts'
import { openStream, removeRows, signalRows, writeRows } from '../helpers/audit-streams.ts'
import { cuttingProxy } from '../helpers/cutting-proxy.ts'
import { check, consoleForFile, consoleService, look, person } from './browser.ts'
import { tabTo } from './keys.ts'

const test = await consoleForFile()
const admin = () => test.account({ username: 'ada', roles: ['admin'] })

async function opened(ada: TestAccount, path: string): Promise<Page> {
  const page = await person(test, ada.cookie)
  await page.goto(path)
  await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  return page
}
const rows = (page: Page) => page.getByRole('table', { name: 'Audit log' }).getByRole('row')

it('the audit log in sentences, with every filter in the address, and each row in full', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace' })
  await ada.client.invite_create({ username: 'bob' })
  const { cell } = await grace.client.cell_create({ data: { label: 'Handbook' } })
  await ada.client.cell_update({ cell_id: cell.id, path: '/handbook' })
  const login = { username: 'ada', password: 'wrong' }
  await test
    .client()
    .account.login(login)
    .catch(() => {})
  const page = await opened(ada, '/admin/audit')
  await page.getByText('created an invite').waitFor()
  await page.getByText('(invalid_credentials)').waitFor()
  await look(page, 'audit')

  await page.getByLabel('Event', { exact: true }).selectOption('invite_create')
  await page.getByText('(invalid_credentials)').waitFor({ state: 'detached' })
  await page.getByLabel('Event', { exact: true }).selectOption('cell_create')
  await expect.poll(() => rows(page).count()).toBe(3)
  await page.getByRole('combobox', { name: 'Who' }).fill('gra')
  await page.getByRole('option', { name: 'grace' }).click()
  await expect.poll(() => rows(page).count()).toBe(2)
  await page.getByRole('combobox', { name: 'Cell' }).fill('/hand')
  await page.getByRole('option', { name: 'Handbook' }).click()
  await page.getByRole('button', { name: 'Handbook Remove Cell' }).waitFor()
  await page.getByLabel('Result').selectOption('success')
  const asked = new URL(page.url()).searchParams
  expect(Object.fromEntries(asked)).toEqual({
    event: 'invite_create,cell_create',
    actor: grace.actor_id,
    cell: cell.id,
    result: 'success',
  })
  await page.reload()
  await expect.poll(() => rows(page).count()).toBe(2)
  await rows(page).getByRole('link', { name: 'Handbook' }).waitFor()
  await look(page, 'audit-filtered')
  await page.getByLabel('Result').selectOption('failure')
  await page.getByText('No event matches these filters.').waitFor()
  await page.getByRole('button', { name: 'Remove Who' }).click()
  await page.getByRole('button', { name: 'Clear filters' }).first().click()
  await page.getByText('created an invite').waitFor()
  expect(page.url()).toMatch(/\/audit$/)

  const row = rows(page).filter({ hasText: 'created an invite' })
  await row.getByRole('link').first().click()
  await page.getByText('invite_id').waitFor()
  await look(page, 'audit-one')
  const heading = page.getByRole('heading', { level: 1 })
  const seq = Number((await heading.innerText()).replace('Event ', ''))
  await page.getByRole('link', { name: 'Next event' }).click()
  await expect.poll(() => heading.innerText()).toBe(`Event ${seq + 1}`)
  await page.getByRole('link', { name: 'Previous event' }).click()
  await page.getByRole('link', { name: 'invite_create' }).click()
  await expect.poll(() => new URL(page.url()).search).toBe('?event=invite_create')
})

it('says that there are newer events, moves nothing meanwhile, and shows them on request', async () => {
  const ada = await admin()
  const invite = (username: string) => ada.client.invite_create({ username })
  await invite('first')
  const page = await opened(ada, '/admin/audit?event=invite_create')
  await expect.poll(() => rows(page).count()).toBe(2)
  await ada.client.cell_create({ data: {} })
  for (const username of ['second', 'third']) await invite(username)
  const show = page.getByRole('button', { name: 'Show 2 newer events' })
  const before = await rows(page).last().boundingBox()
  await show.waitFor()
  expect(await rows(page).last().boundingBox()).toEqual(before)
  expect(await rows(page).count()).toBe(2)
  await look(page, 'audit-newer')
  await show.click()
  await expect.poll(() => rows(page).count()).toBe(4)
  await show.waitFor({ state: 'detached' })
})

it('a bar, or its row of the table, leads to its period; times are local, and say so', async () => {
  const ada = await admin()
  await auditRows(test, 40, {
    created_at: sql`now() - (41 - i) * interval '30 minutes'`,
    outcome: sql`case when i % 3 = 0 then 'failure' else 'success' end`,
  })
  const page = await opened(ada, '/admin/audit')
  const bars = page.getByRole('button', { name: /\d+ succeeded, \d+ refused/ })
  await expect.poll(() => page.locator('.activity-bar:not(:disabled)').count()).toBeGreaterThan(38)
  await page.getByRole('button', { name: 'Show as table' }).click()
  await look(page, 'audit-table')
  await page.getByRole('button', { name: 'Show as table' }).click()
  await bars.and(page.locator(':enabled')).nth(20).click()
  await expect.poll(() => new URL(page.url()).searchParams.has('from')).toBe(true)
  const { from, to } = Object.fromEntries(new URL(page.url()).searchParams)
  expect(Date.parse(to ?? '') - Date.parse(from ?? '')).toBe(900_000)
  await expect.poll(() => rows(page).count()).toBe(2)
  // Berlin is an hour ahead of UTC in January and two in July; the field holds the local time.
  for (const [local, utc] of [
    ['2026-01-22T09:14', '2026-01-22T08:14:00.000Z'],
    ['2026-07-22T09:14', '2026-07-22T07:14:00.000Z'],
  ] as const) {
    await page.getByLabel('From').fill(local)
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).toBe(utc)
    await page.getByText(`Europe/Berlin · ${utc.slice(0, 16).replace('T', ' ')} UTC`).waitFor()
  }
  await page.reload()
  await expect.poll(() => page.getByLabel('From').inputValue()).toBe('2026-07-22T09:14')
})

it('the bars on a phone are wide enough for a finger, and lead to finer ones', async () => {
  const ada = await admin()
  await auditRows(test, 90, { created_at: sql`now() - (91 - i) * interval '15 minutes'` })
  const page = await person(test, ada.cookie, { width: 320, height: 640, touch: true })
  await page.goto('/admin/audit')
  const bars = page.locator('button.activity-bar:enabled')
  const steps = async (): Promise<number[]> => {
    const lefts = await bars.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().left))
    return lefts.slice(1).map((left, index) => left - (lefts[index] as number))
  }
  await expect.poll(() => bars.count()).toBeGreaterThan(5)
  expect(Math.min(...(await steps()))).toBeGreaterThanOrEqual(24)
  await bars.nth(3).tap()
  await expect.poll(() => bars.count()).toBeGreaterThan(9)
  expect(Math.min(...(await steps()))).toBeGreaterThanOrEqual(24)
})

it('takes a date alone from an address, and no time that its fields cannot show', async () => {
  const page = await opened(await admin(), '/admin/audit?from=2026-01-22')
  await expect.poll(() => page.getByLabel('From').inputValue()).toBe('2026-01-22T01:00')
  await rows(page).last().waitFor()
  for (const from of ['+275760-09-13T00:00:00Z', '-000001-01-01T00:00:00Z', 'yesterday']) {
    await page.goto(`/admin/audit?from=${encodeURIComponent(from)}`)
    await rows(page).last().waitFor()
    expect(await page.getByLabel('From').inputValue()).toBe('')
  }
})

/** Not what asks every few seconds for newer events. */
const isExport = (request: Request): boolean => /"since_seq":\d+,"limit":200\b/.test(request.postData() ?? '')

it('exports the lines that the command line exports, and can be stopped', async () => {
  const ada = await admin()
  await auditRows(test, 450)
  const page = await opened(ada, '/admin/audit?event=planted,account_create')
  await page.getByRole('button', { name: 'Export' }).click()
  const saved = page.waitForEvent('download')
  await page.getByRole('dialog').getByRole('button', { name: 'Export' }).click()
  const file = await saved
  await page.getByText('451 rows are in the file.').waitFor()
  await look(page, 'audit-export')
  let read = 0
  page.on('request', (request) => {
    if (isExport(request)) read += 1
  })
  const again = page.waitForEvent('download')
  await page.keyboard.press('Control+Enter')
  expect(await readFile(await (await again).path(), 'utf8')).toBe(await readFile(await file.path(), 'utf8'))
  expect(read).toBe(0)
  const lines: string[] = []
  for await (const row of await exportAudit(test.service.app))
    if (['planted', 'account_create'].includes(row.event_type)) lines.push(`${JSON.stringify(row)}\n`)
  expect(await readFile(await file.path(), 'utf8')).toBe(lines.join(''))

  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  const held = Promise.withResolvers<void>()
  let asked = 0
  await page.route('**/api/rpc', async (route) => {
    if (isExport(route.request()) && ++asked === 2) await held.promise
    await route.continue().catch(() => {})
  })
  await page.getByRole('button', { name: 'Export' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Export' }).click()
  await page.getByText('200 rows', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Stopped after 200 rows.').waitFor()
  held.resolve()

  await page.goto('/admin/audit?event=account_create')
  await page.getByText('created the account').waitFor()
  await page.getByRole('button', { name: 'Export' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Export' }).click()
  await page.getByText('1 row is in the file.').waitFor()
})

it('follows the log; six thousand rows during a pause are complete afterwards, and gaps are shown', async () => {
  const ada = await admin()
  const page = await opened(ada, '/admin/audit/live')
  await page.getByText('New events appear here').waitFor()
  await expect
    .poll(async () => {
      await ada.client.cell_create({ data: {} })
      return page.locator('.tail-line').count()
    })
    .toBeGreaterThan(0)
  await look(page, 'audit-live')
  await page.keyboard.press('p')
  await page.getByRole('button', { name: 'Resume' }).waitFor()
  const before = await page.locator('.tail-line').count()
  await writeRows(test, 6000)
  signalRows(test)
  await page.getByRole('button', { name: 'Resume, 6,000 newer' }).waitFor()
  expect(await page.locator('.tail-line').count()).toBe(before)
  await look(page, 'audit-live-paused')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  // Only the rows in sight are drawn, but all of them can be reached.
  const log = page.getByRole('log')
  await tabTo(log)
  await page.keyboard.press('Home')
  await page.getByRole('button', { name: 'Resume' }).waitFor()
  // The number of each row matches its place, wherever the log is scrolled.
  const [count, firsts] = await log.evaluate(async (box) => {
    const found = new Set<number>()
    for (let n = 0; n <= 20; n++) {
      box.scrollTop = (box.scrollHeight / 20) * n
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      for (const line of box.querySelectorAll<HTMLElement>('.tail-line')) {
        const seq = Number(line.querySelector('a')?.pathname.split('/').at(-1))
        found.add(seq - Number(/\((\d+)px/.exec(line.style.transform)?.[1]) / line.offsetHeight)
      }
    }
    return [box.scrollHeight / 32, [...found]]
  })
  const { events } = await ada.client.audit_log_list({ limit: 1 })
  expect(count).toBe(5000)
  expect(firsts).toEqual([(events[0]?.seq ?? 0) - 4999])

  await page.getByLabel('Only rows with').fill('nothing like this')
  await page.getByText('No event matches these filters.').waitFor()
})

it('continues after a restart of the server with each row once, and says what was lost', async () => {
  const ada = await admin()
  const second = await consoleService({ database_url: test.databaseUrl })
  onTestFinished(() => second.close())
  const proxy = await cuttingProxy(second.url)
  onTestFinished(() => proxy.close())
  const page = await person({ ...test, url: proxy.url }, ada.cookie)
  await page.goto('/admin/audit/live')
  const texts = () => page.locator('.tail-line').allInnerTexts()
  await page.getByText('New events appear here').waitFor()
  await expect
    .poll(async () => {
      await ada.client.cell_create({ data: {} })
      return (await texts()).length
    })
    .toBeGreaterThan(0)
  proxy.lead(test.url)
  await second.close()
  await page.getByText(/Connection lost. Trying again in \d+ s, after event \d+\./).waitFor()
  for (const username of ['grace', 'bob', 'eve']) await ada.client.invite_create({ username })
  await expect
    .poll(async () => (await texts()).filter((text) => text.includes('created an invite')).length, {
      timeout: 30_000,
    })
    .toBe(3)
  const seqs = await page
    .locator('.tail-line a[href*="/audit/"]')
    .evaluateAll((links) => links.map((link) => Number(link.getAttribute('href')?.split('/').at(-1))))
  expect(seqs).toEqual(Array.from(seqs, (_, index) => (seqs[0] as number) + index))

  // Retention removes rows while the connection is down.
  await writeRows(test, 3)
  const following = page.getByText('Following', { exact: true })
  await following.waitFor()
  proxy.lead('http://127.0.0.1:1')
  proxy.cut()
  await page.getByText('Connecting', { exact: true }).waitFor()
  expect(await following.count()).toBe(0)
  await writeRows(test, 5)
  const { events } = await ada.client.audit_log_list({ limit: 1 })
  await removeRows(test, events[0]?.seq ?? 0)
  proxy.lead(test.url)
  await page.getByText(/Rows \d+ to \d+ were removed by retention\./).waitFor({ timeout: 40_000 })
  await following.waitFor()
  await look(page, 'audit-live-lost')
})

it('ends with its reason when the role admin is ended, and leaves the pages of admins', async () => {
  const ada = await admin()
  await test.account({ username: 'eve', roles: ['admin'] })
  const page = await opened(ada, '/admin/audit/live')
  await page.getByText('New events appear here').waitFor()
  const [grant] = (await ada.client.account.status()).role_grants
  await ada.client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id: grant?.id ?? '' })
  await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  await page.getByText('Your role admin was ended.').waitFor()
  // The socket reported it, so the menu entries of admins left with the page, without a reload.
  await page.getByRole('link', { name: 'Cells', exact: true }).waitFor()
  expect(await page.getByRole('link', { name: /^(People|Audit log)$/ }).count()).toBe(0)
})

it('has one stream however many pages a tab shows, and says when other windows have taken its place', async () => {
  const ada = await admin()
  const page = await opened(ada, '/admin/audit/live')
  await page.getByText('New events appear here').waitFor()
  await page.goto('/admin/people')
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('link', { name: 'Live' }).click()
  await page.getByText('New events appear here').waitFor()
  await expect.poll(() => test.service.app.hub.count().streams).toBe(1)
  // Newer streams of the same session end the oldest.
  const others = await Promise.all(Array.from({ length: 12 }, () => openStream(test, { cookie: ada.cookie })))
  onTestFinished(() => {
    for (const one of others) one.leave()
  })
  await page.getByText('Open in too many windows.').waitFor()
  await check(page, 'one window too many')
  await page.getByRole('button', { name: 'Reconnect' }).click()
  await page.getByText('Following').waitFor()
})

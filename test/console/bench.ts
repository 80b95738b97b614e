import { parseArgs } from 'node:util'
import { type CDPSession, chromium, type Page } from 'playwright-core'
import { sql } from '../../src/db/db.ts'
import { type TestAccount, type TestService, testService } from '../../src/testing/index.ts'
import { signalRows, writeRows } from '../helpers/audit-streams.ts'
import { allLoaded, toTheEnd } from './rows.ts'

/**
 * `npm run bench:console`: how fast the built console is in a Chromium with its CPU slowed fourfold: until usable, from
 * key or click to the next paint, opening the largest cells, scrolling a long list, and following a busy audit log.
 */
const { values: flags } = parseArgs({
  options: {
    people: { type: 'string', default: '100000' },
    rate: { type: 'string', default: '500' },
    slow: { type: 'string', default: '4' },
  },
})
const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
const sorted = (all: readonly number[]): number[] => all.toSorted((a, b) => a - b)
const report = (name: string, text: string): void => console.log(`${name.padEnd(44)}${text}`)

/** What the page measures about itself. */
type Input = { duration: number; handlers: number; name: string }
type Seen = { inputs: Record<string, Input>; tasks: number[]; interactive?: number }
declare global {
  interface Window {
    seen: Seen
  }
}

function observe(): void {
  const seen: Seen = { inputs: {}, tasks: [] }
  window.seen = seen
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as (PerformanceEventTiming & { interactionId: number })[]) {
      const { interactionId, duration, processingStart, processingEnd, name, target } = entry
      if (!interactionId || duration <= (seen.inputs[interactionId]?.duration ?? 0)) continue
      const text = target instanceof HTMLElement ? target.innerText.slice(0, 20) || target.tagName : ''
      const handlers = Math.round(processingEnd - processingStart)
      seen.inputs[interactionId] = { duration, handlers, name: `${name} ${text}` }
    }
  }).observe({ type: 'event', buffered: true, durationThreshold: 16 } as PerformanceObserverInit)
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.tasks.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  const watch = (): void => {
    if (document.querySelector('h1')) seen.interactive ??= performance.now()
    else requestAnimationFrame(watch)
  }
  watch()
}

async function loading(page: Page, url: string): Promise<void> {
  const found: number[] = []
  for (let round = 0; round < 7; round++) {
    await page.goto(`${url}/admin?round=${round}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    found.push(await page.evaluate(() => window.seen.interactive ?? 0))
    // Empties the cache, so that the next round loads the console again.
    await (await page.context().newCDPSession(page)).send('Network.clearBrowserCache')
  }
  report('Home usable, median of 7 (ms)', at(sorted(found), 0.5).toFixed(0))
}

async function inputs(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/admin`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  for (const name of ['Cells', 'People', 'Roles', 'Audit log', 'My account', 'People']) {
    await page.getByRole('link', { name, exact: true }).first().click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  }
  await page.keyboard.press('/')
  await page.keyboard.type('person12', { delay: 60 })
  await page.keyboard.press('Escape')
  await page.keyboard.press('?')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('audit', { delay: 60 })
  await page.keyboard.press('Enter')
  await page.waitForTimeout(500)
  const seen = await page.evaluate(() => Object.values(window.seen.inputs))
  const found = sorted(seen.map(({ duration }) => duration))
  report(
    'Input to next paint, p98 (ms)',
    `${at(found, 0.98)} of ${found.length} inputs, median ${at(found, 0.5)}`,
  )
  for (const { name, duration, handlers } of seen.toSorted((a, b) => b.duration - a.duration).slice(0, 3))
    report(`  ${name}`, `${duration}, of it ${handlers} in handlers`)
}

async function scrolling(page: Page, cdp: CDPSession, test: TestService): Promise<void> {
  const people = Number(flags.people)
  await page.goto(`${test.url}/admin/people`)
  await page.getByText(/ loaded$/).waitFor()
  const began = performance.now()
  await allLoaded(page, people + 1)
  report(`Loading ${people} people (s)`, ((performance.now() - began) / 1000).toFixed(1))
  report('Rows in the document', String(await page.locator('[role=row]').count()))
  await returning(page, people)
  // Alternates with the simplest rows possible, which show what the browser and the machine can do.
  const floor = await page.context().newPage()
  await floor.setContent(
    `<main style="height: ${await page.evaluate(() => document.documentElement.scrollHeight)}px">`,
  )
  await floor.evaluate(plainRows)
  const lists = [
    ['plain rows', floor, await floor.context().newCDPSession(floor)],
    ['People', page, cdp],
  ] as const
  for (const [name, on, session] of [...lists, ...lists]) {
    await on.bringToFront()
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    report(`Processor time of a frame, ${name} (ms)`, await costs(on, session))
    await slow(session)
    report(`Frames, ${name}, p50 / p95 (ms)`, await frames(on))
    await session.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  }
  await cdp.send('HeapProfiler.collectGarbage')
  report('Heap afterwards (MB)', ((await metricsOf(cdp)).JSHeapUsedSize / 1e6).toFixed(1))
}

/** Opens the last row; Back must show it again in its place. */
async function returning(page: Page, people: number): Promise<void> {
  await toTheEnd(page, people + 1)
  // The first account is the last row.
  const last = page.getByRole('link', { name: 'ada', exact: true })
  const before = await last.boundingBox()
  await last.click()
  await page.getByRole('heading', { name: 'ada', level: 1 }).waitFor()
  const began = performance.now()
  await page.goBack()
  await last.waitFor()
  report(`Back to the last of ${people} rows (ms)`, (performance.now() - began).toFixed(0))
  await page.waitForTimeout(500)
  const after = await last.boundingBox()
  if (!before || after?.y !== before.y) throw new Error(`The row was at ${before?.y} and is at ${after?.y}.`)
}

/** A list whose rows are one line of text each. */
function plainRows(): void {
  const rows = Array.from({ length: 32 }, () => document.createElement('div'))
  for (const row of rows)
    row.style.cssText =
      'position: absolute; inset: 0 0 auto; height: 40px; contain: strict; font: 14px/20px system-ui'
  document.body.append(...rows)
  const place = (): void => {
    const first = Math.max(0, Math.floor(scrollY / 40) - 6)
    for (let index = first; index < first + rows.length; index++) {
      const row = rows[index % rows.length] as HTMLElement
      if (row.dataset.index === String(index)) continue
      row.dataset.index = String(index)
      row.textContent = `person${index} person${index}@example.com editor 2026-11-22`
      row.style.transform = `translateY(${index * 40}px)`
    }
  }
  addEventListener('scroll', place, { passive: true })
  place()
}

async function metricsOf(cdp: CDPSession): Promise<Record<string, number> & { JSHeapUsedSize: number }> {
  const { metrics } = await cdp.send('Performance.getMetrics')
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value])) as never
}

/** The times of the page's own thread, whatever else the machine does. */
async function costs(page: Page, cdp: CDPSession): Promise<string> {
  const before = await metricsOf(cdp)
  await frames(page)
  const after = await metricsOf(cdp)
  const of = (name: string): string =>
    ((((after[name] ?? 0) - (before[name] ?? 0)) * 1000) / framesCount).toFixed(2)
  return `${of('TaskDuration')}: script ${of('ScriptDuration')}, style ${of('RecalcStyleDuration')}, layout ${of('LayoutDuration')}`
}

const framesCount = 600

async function frames(page: Page): Promise<string> {
  const found = await page.evaluate(async (count) => {
    const times: number[] = []
    scrollTo(0, document.documentElement.scrollHeight / 2)
    let last = performance.now()
    for (let n = 0; n < count; n++) {
      // The first half at the pace of a wheel, the second in leaps.
      if (n < count / 2) scrollBy(0, -120)
      else scrollTo(0, (document.documentElement.scrollHeight / (count / 2)) * (n - count / 2))
      const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve))
      times.push(now - last)
      last = now
    }
    return times
  }, framesCount)
  const of = (times: number[]) => [0.5, 0.95].map((share) => at(sorted(times), share).toFixed(1)).join(' / ')
  return `${of(found)}, of the wheel's pace ${of(found.slice(0, framesCount / 2))}`
}

/** The largest cells possible: a long list, a long text, and deep nesting. */
async function largest(page: Page, { url }: TestService, ada: TestAccount): Promise<void> {
  const deep = Array.from({ length: 30 }).reduce<object>((inner) => ({ inner }), {})
  const kinds = { 'a list of 100,000': Array(100_000).fill(0), 'text of 250 kB': 'x'.repeat(250_000), deep }
  for (const [name, big] of Object.entries(kinds)) {
    const { cell } = await ada.client.cell_create({ data: { label: name, big } })
    const began = performance.now()
    await page.goto(`${url}/admin/cells/${cell.id}`)
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await page.getByText('big').first().waitFor()
    report(`Opening a cell: ${name} (ms)`, (performance.now() - began).toFixed(0))
  }
}

async function tailing(page: Page, cdp: CDPSession, test: TestService): Promise<void> {
  await page.goto(`${test.url}/admin/audit/live`)
  await page.getByText('New events appear here').waitFor()
  await slow(cdp)
  await page.evaluate(() => window.seen.tasks.splice(0))
  const [rate, seconds, each] = [Number(flags.rate), 10, 10]
  for (let n = 0; n < seconds * each; n++) {
    await Promise.all([writeRows(test, rate / each), new Promise((done) => setTimeout(done, 1000 / each))])
    signalRows(test)
  }
  const tasks = sorted(await page.evaluate(() => window.seen.tasks))
  const rows = await page.locator('.tail-line').count()
  report(
    `Live tail at ${rate} rows/s, longest task (ms)`,
    `${Math.round(tasks.at(-1) ?? 0)} in ${seconds} s, ${tasks.length} over 50 ms, ${rows} rows drawn`,
  )
}

/** Measures from the call that ends a person's role until their open page and the menu entries of admins are gone. */
async function ending(page: Page, { client }: TestAccount, eve: TestAccount): Promise<void> {
  const found: number[] = []
  for (let round = 0; round < 10; round++) {
    const { role_grant_id } = await client.role_grant_assign({ to_account_id: eve.id, role: 'admin' })
    await page.goto('/admin/people')
    await page.getByText(/ loaded$/).waitFor()
    const began = performance.now()
    await client.role_grant_revoke({ actor_id: eve.actor_id, role_grant_id })
    await page.getByRole('heading', { name: 'Admins only' }).waitFor()
    await page.getByRole('link', { name: 'People', exact: true }).waitFor({ state: 'detached' })
    found.push(performance.now() - began)
  }
  const all = sorted(found).map((ms) => ms.toFixed(0))
  report(
    'A role ended: page and entries gone (ms)',
    `median ${at(sorted(found), 0.5).toFixed(0)}, longest ${all.at(-1)}`,
  )
}

const slow = (cdp: CDPSession) => cdp.send('Emulation.setCPUThrottlingRate', { rate: Number(flags.slow) })

const test = await testService({
  ...{ console: 'on', pages: true, audit_stream: true, cookie_secure: false, host: '127.0.0.1' },
  limit_admin_read: 'off',
})
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.service.app.db.run(sql`
    insert into account (username, password_hash, created_at)
    select 'person' || i, '!', now() - i * interval '1 minute' from generate_series(1, ${Number(flags.people)}::int) i`)
  const open = async ({ cookie } = ada): Promise<{ page: Page; cdp: CDPSession }> => {
    const context = await browser.newContext({ baseURL: test.url, viewport: { width: 1280, height: 800 } })
    const [name = '', value = ''] = cookie.split('=')
    await context.addCookies([{ name, value, url: test.url }])
    await context.addInitScript(observe)
    const page = await context.newPage()
    page.setDefaultTimeout(120_000)
    const cdp = await context.newCDPSession(page)
    return { page, cdp }
  }
  for (const measure of [loading, inputs]) {
    const { page, cdp } = await open()
    await slow(cdp)
    await measure(page, test.url)
    await page.context().close()
  }
  {
    const { page, cdp } = await open()
    await slow(cdp)
    await largest(page, test, ada)
    await page.context().close()
  }
  {
    const eve = await test.account({ username: 'eve' })
    const { page } = await open(eve)
    await ending(page, ada, eve)
    await page.context().close()
  }
  for (const measure of [scrolling, tailing]) {
    const { page, cdp } = await open()
    await measure(page, cdp, test)
    await page.context().close()
  }
} finally {
  await browser.close()
  await test.close()
}

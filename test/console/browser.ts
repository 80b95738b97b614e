import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, expect } from 'vitest'
import { type TestOptions, type TestService, testService } from '../../src/testing/index.ts'

const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A service with everything that the console shows, as `cellkeep start` has it. */
export const consoleService = (options: TestOptions = {}): Promise<TestService> =>
  testService({
    console: 'on',
    pages: true,
    audit_stream: true,
    app_settings: true,
    cookie_secure: false,
    host: '127.0.0.1',
    ...options,
  })

/** One for all stories of a file, emptied after each. */
export async function consoleForFile(options?: TestOptions): Promise<TestService> {
  let test: TestService | undefined
  afterEach(() => test?.reset())
  afterAll(() => test?.close())
  test = await consoleService(options)
  return test
}

let browser: Promise<Browser> | undefined
const contexts: BrowserContext[] = []
/** What no page may do: errors of scripts, of the console and of the policy, requests to other places. */
const faults: string[] = []

/** `visits`: another origin that the story leads to; `expects`: what the console of the browser says on purpose. */
export type Look = {
  width?: number
  height?: number
  dark?: boolean
  touch?: boolean
  visits?: string
  expects?: RegExp
}

/** A browser of one person, with no cookies yet; `cookie` signs in. */
export async function person(test: TestService, cookie?: string, look: Look = {}): Promise<Page> {
  browser ??= chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  const { width = 1280, height = 800, dark = false, touch = false, visits, expects } = look
  const context = await (await browser).newContext({
    baseURL: test.url,
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    hasTouch: touch,
    isMobile: touch,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    timezoneId: 'Europe/Berlin',
  })
  contexts.push(context)
  if (cookie) {
    const [name = '', value = ''] = cookie.split('=')
    await context.addCookies([{ name, value, url: test.url }])
  }
  await context.addInitScript(axe)
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, sample }) =>
      console.error(`policy: ${violatedDirective} ${sample}`),
    )
  })
  context.on('request', (request) => {
    const { origin, pathname } = new URL(request.url())
    if (origin === visits) return
    if (origin !== test.url || !/^\/(api|admin|pages|health|ready|setup|sign-|invite|$)/.test(pathname))
      faults.push(`request to ${request.url()}`)
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('pageerror', ({ message }) => {
    if (!expects?.test(message)) faults.push(`page error: ${message}`)
  })
  page.on('console', (message) => {
    // Chromium reports refusals as errors of loading; they are part of the stories.
    if (expects?.test(message.text())) return
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(message.text()))
      faults.push(`console: ${message.text()}`)
  })
  return page
}

/** Waits until the editor, which draws some time after a resize, stands still: axe fails on what goes while it works. */
const editorAtRest = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    const roots = [...document.querySelectorAll('*')].flatMap(({ shadowRoot }) => shadowRoot ?? [])
    if (roots.length === 0) return
    for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame)
    await new Promise<void>((resolve) => {
      let rest = setTimeout(resolve, 200)
      const observer = new MutationObserver(() => {
        clearTimeout(rest)
        rest = setTimeout(resolve, 200)
      })
      for (const root of roots)
        observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true })
    })
  })

/** Violations of WCAG 2.2 AA on the page as it is. */
export async function violations(page: Page): Promise<string[]> {
  await editorAtRest(page)
  const found = await page.evaluate(
    () =>
      (window as never as { axe: { run(options: object): Promise<AxeResults> } }).axe.run({
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
      }) as Promise<AxeResults>,
  )
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
  )
}

/** Keeps what a page looks like, in three forms, and checks each; `npm run test:console` writes them to test/console/shots. */
export async function look(page: Page, name: string): Promise<void> {
  const shots = process.env.CELLKEEP_SHOTS
  const before = page.viewportSize()
  for (const [form, size, scheme] of [
    ['light', { width: 1280, height: 800 }, 'light'],
    ['dark', { width: 1280, height: 800 }, 'dark'],
    ['phone', { width: 390, height: 844 }, 'light'],
  ] as const) {
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    expect.soft(await violations(page), `${name} ${form}`).toEqual([])
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect.soft(overflow, `${name} ${form}: nothing scrolls sideways`).toBeLessThanOrEqual(0)
    if (shots) await page.screenshot({ path: `${shots}/${name}-${form}.png` })
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  if (before) await page.setViewportSize(before)
}

afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()))
  expect(faults.splice(0)).toEqual([])
})

afterAll(async () => {
  await (await browser)?.close()
  browser = undefined
})

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, expect } from 'vitest'
import { type TestOptions, type TestService, testService } from '../../src/testing/index.ts'

const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
/** `insecure.test` is this machine, as an origin that browsers do not trust without https. */
const args = ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP insecure.test 127.0.0.1']
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A service with everything that the console shows. */
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

/** One service for all stories of a file, emptied after each. */
export async function consoleForFile(options?: TestOptions): Promise<TestService> {
  let test: TestService | undefined
  afterEach(() => test?.reset())
  afterAll(() => test?.close())
  test = await consoleService(options)
  return test
}

let browser: Promise<Browser> | undefined
const contexts: BrowserContext[] = []
/** What no page may cause: errors of scripts, of the browser's console and of the policy, requests to other origins. */
const faults: string[] = []

/**
 * `visits`: another origin that the story leads to; `expects`: messages of the browser's console that it causes on
 * purpose.
 */
export type Look = {
  width?: number
  height?: number
  dark?: boolean
  touch?: boolean
  visits?: string
  expects?: RegExp
}

/** The browser of one person, without cookies at first; `cookie` signs in. */
export async function person(test: TestService, cookie?: string, look: Look = {}): Promise<Page> {
  browser ??= chromium.launch({ executablePath, args })
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
    // Chromium reports refusals as errors of loading, but the stories cause them on purpose.
    if (expects?.test(message.text())) return
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(message.text()))
      faults.push(`console: ${message.text()}`)
  })
  return page
}

/**
 * Waits until the editor, which draws for some time after a resize, is still: axe fails on elements that vanish
 * meanwhile.
 */
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

const wcag = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** The only rules whose result depends on the theme. */
const rulesOfColour = ['color-contrast', 'link-in-text-block']

/** Violations of WCAG 2.2 AA on the page as it is; `runOnly`: tags or rules. */
export async function violations(page: Page, runOnly: readonly string[] = wcag): Promise<string[]> {
  await editorAtRest(page)
  const found = await page.evaluate(
    (runOnly) =>
      (window as never as { axe: { run(options: object): Promise<AxeResults> } }).axe.run({
        runOnly,
        resultTypes: ['violations'],
      }) as Promise<AxeResults>,
    runOnly,
  )
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
  )
}

const [laptop, phone] = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]
/** Each width in one theme by every rule; the other theme has the same markup and only other colours. */
const forms = [
  { form: 'light', size: laptop, scheme: 'light', rules: wcag },
  { form: 'phone-dark', size: phone, scheme: 'dark', rules: wcag },
  { form: 'dark', size: laptop, scheme: 'dark', rules: rulesOfColour },
  { form: 'phone', size: phone, scheme: 'light', rules: rulesOfColour },
] as const

/** Checks a state of a page in light on a laptop and in dark on a phone: WCAG 2.2 AA, and no sideways scrolling. */
export const check = (page: Page, name: string): Promise<void> => checkIn(forms.slice(0, 2), page, name)

async function checkIn(
  some: readonly (typeof forms)[number][],
  page: Page,
  name: string,
  then: (form: string) => Promise<unknown> = async () => {},
): Promise<void> {
  const before = page.viewportSize()
  for (const { form, size, scheme, rules } of some) {
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    expect.soft(await violations(page, rules), `${name} ${form}`).toEqual([])
    const nested = page.locator(':is(a, button) :is(a, button)')
    expect.soft(await nested.count(), `${name} ${form}: no control lies in another`).toBe(0)
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect.soft(overflow, `${name} ${form}: nothing scrolls sideways`).toBeLessThanOrEqual(0)
    await then(form)
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  if (before) await page.setViewportSize(before)
}

/** The same in both themes at both widths; keeps screenshots if `CELLKEEP_SHOTS` names a folder. */
export async function look(page: Page, name: string): Promise<void> {
  const shots = process.env.CELLKEEP_SHOTS
  await checkIn(forms, page, name, async (form) => {
    if (shots) await page.screenshot({ path: `${shots}/${name}-${form}.png` })
  })
}

afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()))
  expect(faults.splice(0)).toEqual([])
})

afterAll(async () => {
  await (await browser)?.close()
  browser = undefined
})

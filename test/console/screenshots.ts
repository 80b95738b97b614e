import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { testService } from '../../src/testing/index.ts'

/**
 * `npm run screenshots`: the pictures of README and docs, with the same data, ids and clock each time, so that only
 * what was changed looks different. `--check` compares instead: it fails if more than one pixel in a thousand differs.
 */
const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const isCheck = process.argv.includes('--check')
const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
const share = 0.001

/** What the clock of the page shows, and when the data were made: shortly before. */
const shown = Date.parse('2026-11-22T09:10:00Z')
const made = Date.parse('2026-11-22T09:00:00Z')
const began = Date.now()
const quarter = 900_000

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g
const standIns = new Map<string, string>()
const originals = new Map<string, string>()

function standInOf(id: string): string {
  const known = standIns.get(id)
  if (known) return known
  // Numbers that look like ids, in the order in which the pages meet them.
  const n = standIns.size + 1
  const digits = (seed: number, length: number): string =>
    Math.floor(((n * seed) % 0.9999) * 16 ** length)
      .toString(16)
      .padStart(length, '0')
  const made = `${digits(0.618034, 8)}-${digits(0.317, 4)}-4${digits(0.71, 3)}-a${digits(0.13, 3)}-${digits(0.414214, 12)}`
  standIns.set(id, made)
  originals.set(made, id)
  return made
}
const toShown = (text: string): string =>
  text
    .replace(uuid, standInOf)
    .replace(time, (at) =>
      new Date(made + Math.round((Date.parse(at) - began) / quarter) * quarter).toISOString(),
    )
const toReal = (text: string): string =>
  text
    .replace(uuid, (id) => originals.get(id) ?? id)
    .replace(time, (at) => new Date(began + Date.parse(at) - made).toISOString())

async function stage(context: BrowserContext): Promise<void> {
  await context.clock.setFixedTime(shown)
  await context.route('**/api/**', async (route) => {
    const request = route.request()
    const postData = request.postData()
    const response = await route.fetch(postData ? { postData: toReal(postData) } : {})
    await route.fulfill({ response, body: toShown(await response.text()) })
  })
}

const test = await testService({
  ...{ console: 'on', pages: true, cookie_secure: false, host: '127.0.0.1', ws: false, audit_stream: false },
  roles: [
    { name: 'editor', description: 'May edit what is shared', grant_paths: ['admin'] },
    {
      name: 'teacher',
      description: 'Leads a room',
      grant_paths: ['admin'],
      applicable_scope_kinds: ['room'],
    },
  ],
  scope_kinds: [{ name: 'room' }],
})
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
const faults: string[] = []

async function keep(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0)
  await page.evaluate(() => document.fonts.ready)
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  const file = `${folder}${name}.png`
  if (!isCheck) return writeFile(file, bytes)
  const differing = await differenceOf(bytes, await readFile(file))
  if (differing > share) faults.push(`${name}: ${(differing * 100).toFixed(2)} % differ`)
}

/** Which share of the pixels is not the same; the browser reads the pictures. */
async function differenceOf(one: Buffer, other: Buffer): Promise<number> {
  const page = await browser.newPage()
  const found = await page.evaluate(
    async (pictures) => {
      const [a, b] = await Promise.all(
        pictures.map(async (picture) => {
          const bitmap = await createImageBitmap(
            await (await fetch(`data:image/png;base64,${picture}`)).blob(),
          )
          const drawn = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
          drawn?.drawImage(bitmap, 0, 0)
          return drawn?.getImageData(0, 0, bitmap.width, bitmap.height)
        }),
      )
      if (!a || !b || a.width !== b.width || a.height !== b.height) return 1
      let count = 0
      for (let at = 0; at < a.data.length; at += 4)
        if ([0, 1, 2].some((part) => Math.abs((a.data[at + part] ?? 0) - (b.data[at + part] ?? 0)) > 8))
          count += 1
      return count / (a.data.length / 4)
    },
    [one.toString('base64'), other.toString('base64')],
  )
  await page.close()
  return found
}

try {
  await mkdir(folder, { recursive: true })
  const ada = await test.account({ username: 'ada', email: 'ada@example.com', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace', email: 'grace@example.com' })
  const bob = await test.account({ username: 'bob' })
  const place = { scope_kind: 'room', scope_id: '3b241101-e2bb-4255-8caf-4136c566a962' }
  await ada.client.role_grant_assign({ to_account_id: grace.id, role: 'teacher', ...place })
  await ada.client.role_grant_assign({ to_account_id: bob.id, role: 'editor' })
  await ada.client.role_grant_offer_create({
    to_account_id: grace.id,
    role: 'editor',
    message: 'For the release',
  })
  await ada.client.invite_create({ email: 'eve@example.com' })
  const { cell } = await ada.client.cell_create({
    kind: 'document',
    data: { label: 'Handbook', summary: 'How we work', meta: { tags: ['team', 'start'], pages: 12 } },
  })
  for (const label of ['Release plan', 'Notes of the week', 'Who is who'])
    await grace.client.cell_create({ kind: 'note', visibility: 'public', data: { label } })
  await ada.client.cell_grant_create({
    cell_id: cell.id,
    level: 'editor',
    principal: { actor_id: grace.actor_id },
  })
  await test
    .client()
    .account.login({ username: 'bob', password: 'wrong' })
    .catch(() => {})

  const open = async (form: 'light' | 'dark' | 'phone'): Promise<Page> => {
    const context = await browser.newContext({
      baseURL: test.url,
      viewport: form === 'phone' ? { width: 390, height: 844 } : { width: 1120, height: 700 },
      colorScheme: form === 'dark' ? 'dark' : 'light',
      reducedMotion: 'reduce',
      timezoneId: 'Europe/Berlin',
    })
    const [name = '', value = ''] = ada.cookie.split('=')
    await context.addCookies([{ name, value, url: test.url }])
    await stage(context)
    return await context.newPage()
  }
  const pages: [name: string, path: string, text: string, forms: ('light' | 'dark' | 'phone')[]][] = [
    ['people', '/admin/people', 'teacher in room', ['light', 'dark', 'phone']],
    ['person', `/admin/people/${standInOf(grace.id)}`, 'ada gave grace teacher', ['light']],
    ['give-role', `/admin/people/${standInOf(grace.id)}?dialog=give&role=editor`, 'May edit what', ['light']],
    ['cell', `/admin/cells/${standInOf(cell.id)}`, 'How we work', ['light', 'dark', 'phone']],
    ['sharing', `/admin/cells/${standInOf(cell.id)}/sharing`, 'grace', ['light']],
    ['audit', '/admin/audit', 'made an invite', ['light', 'dark']],
  ]
  for (const [name, path, text, forms] of pages)
    for (const form of forms) {
      const page = await open(form)
      await page.goto(path)
      await page.getByText(text).first().waitFor({ state: 'attached' })
      await page.waitForLoadState('networkidle')
      await keep(page, form === 'light' ? name : `${name}-${form}`)
      await page.context().close()
    }
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
} finally {
  await browser.close()
  await test.close()
}

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { chromium, type Page } from 'playwright-core'
import { testService } from '../../src/testing/index.ts'
import { stage, standInOf } from './staged.ts'

/**
 * `npm run screenshots`: the pictures of README and docs, and those of states in `pictures`, with the same data, ids
 * and clock each time, so that only real changes show. `--check` compares instead, and fails if more than one pixel in
 * a thousand differs. Other fonts give other pixels, so a machine with other fonts compares nothing.
 */
const folders = {
  docs: fileURLToPath(new URL('../../docs/images/', import.meta.url)),
  states: fileURLToPath(new URL('pictures/', import.meta.url)),
}
const fontsFile = `${folders.states}fonts.txt`
const isCheck = process.argv.includes('--check')
const executablePath = process.env.CELLKEEP_CHROMIUM ?? '/usr/bin/chromium'
const share = 0.001

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

/** The widths of text in the fonts of this machine, and the browser that draws them. */
async function fonts(): Promise<string> {
  const page = await browser.newPage()
  const widths = await page.evaluate(() => {
    const drawn = new OffscreenCanvas(1, 1).getContext('2d') as OffscreenCanvasRenderingContext2D
    return ['14px system-ui', '600 14px system-ui', '13px ui-monospace', '13px monospace'].map((font) => {
      drawn.font = font
      return drawn.measureText('Quick wafting zephyrs vex bold Jim, 0123456789').width
    })
  })
  await page.close()
  return JSON.stringify({ chromium: browser.version().split('.')[0], widths })
}

async function keep(page: Page, name: string, folder: string): Promise<void> {
  await page.mouse.move(0, 0)
  await page.evaluate(() => document.fonts.ready)
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  const file = `${folder}${name}.png`
  const before = await readFile(file).catch(() => null)
  const differing = before === null ? 1 : await differenceOf(bytes, before)
  if (differing <= share) return
  if (isCheck) faults.push(`${name}: ${(differing * 100).toFixed(2)} % differ`)
  else await writeFile(file, bytes)
}

/** The share of pixels that differ; the browser decodes the pictures. */
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
  await mkdir(folders.states, { recursive: true })
  const own = `${await fonts()}\n`
  if (!isCheck) await writeFile(fontsFile, own)
  const isComparable = own === (await readFile(fontsFile, 'utf8'))
  if (!isComparable)
    console.warn('The pictures are not compared: they were taken with other fonts or another browser.')
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

  type Form = 'light' | 'dark' | 'phone'
  type Picture = {
    path: string
    text: string
    forms: readonly Form[]
    /** Who looks at the page, by default ada; `nobody` is signed out. */
    as?: 'grace' | 'nobody'
    /** A method that is refused. */
    refused?: string
  }
  const cookies = { ada: ada.cookie, grace: grace.cookie, nobody: undefined }
  const open = async (form: Form, { as, refused }: Picture): Promise<Page> => {
    const context = await browser.newContext({
      baseURL: test.url,
      viewport: form === 'phone' ? { width: 390, height: 844 } : { width: 1120, height: 700 },
      colorScheme: form === 'dark' ? 'dark' : 'light',
      reducedMotion: 'reduce',
      timezoneId: 'Europe/Berlin',
    })
    const [name = '', value = ''] = cookies[as ?? 'ada']?.split('=') ?? []
    if (name) await context.addCookies([{ name, value, url: test.url }])
    await stage(context)
    if (refused)
      await context.route('**/api/rpc', async (route) => {
        const { id, method } = route.request().postDataJSON() as { id: number; method: string }
        const error = {
          code: -32603,
          message: 'no',
          data: { reason: 'internal_error', request_id: standInOf('x') },
        }
        if (method === refused) await route.fulfill({ status: 500, json: { jsonrpc: '2.0', id, error } })
        else await route.fallback()
      })
    return await context.newPage()
  }
  const [person, paper] = [`/admin/people/${standInOf(grace.id)}`, `/admin/cells/${standInOf(cell.id)}`]
  const all = ['light', 'dark', 'phone'] as const
  const pictures: Record<keyof typeof folders, Record<string, Picture>> = {
    docs: {
      people: { path: '/admin/people', text: 'teacher in room', forms: all },
      person: { path: person, text: 'ada gave grace teacher', forms: ['light'] },
      'give-role': { path: `${person}?dialog=give&role=editor`, text: 'May edit what', forms: ['light'] },
      cell: { path: paper, text: 'How we work', forms: all },
      sharing: { path: `${paper}/sharing`, text: 'grace', forms: ['light'] },
      audit: { path: '/admin/audit', text: 'created an invite', forms: ['light', 'dark'] },
    },
    states: {
      home: { path: '/admin', text: 'Handbook', forms: ['light', 'phone'] },
      offer: { path: '/admin/inbox', text: 'For the release', forms: ['dark', 'phone'], as: 'grace' },
      empty: { path: '/admin/me/tokens', text: 'No tokens', forms: all },
      'none-found': { path: '/admin/people?q=zz', text: 'Nobody matches', forms: ['light', 'phone'] },
      refused: { path: '/admin/invites', text: 'Try again', forms: all, refused: 'invite_list' },
      forbidden: { path: '/admin/people', text: 'Admins only', forms: all, as: 'grace' },
      missing: {
        path: '/admin/cells/0190f000-0000-7000-8000-000000000000',
        text: 'Try again',
        forms: ['light', 'phone'],
      },
      'sign-in': { path: '/sign-in', text: 'Username or e-mail', forms: all, as: 'nobody' },
      'new-cell': { path: '/admin/cells?dialog=new', text: 'A JSON object.', forms: ['dark', 'phone'] },
      'new-token': {
        path: '/admin/me/tokens?dialog=token',
        text: 'What it is for',
        forms: ['light', 'phone'],
      },
      relations: { path: `${paper}/relations`, text: 'Leads to', forms: ['light', 'phone'] },
      roles: { path: '/admin/roles', text: 'Leads a room', forms: ['light', 'phone'] },
    },
  }
  for (const kind of isComparable ? (['docs', 'states'] as const) : [])
    for (const [name, picture] of Object.entries(pictures[kind]))
      for (const form of picture.forms) {
        const page = await open(form, picture)
        await page.goto(picture.path)
        await page.getByText(picture.text).first().waitFor({ state: 'attached' })
        await page.waitForLoadState('networkidle')
        await keep(page, form === 'light' ? name : `${name}-${form}`, folders[kind])
        await page.context().close()
      }
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
} finally {
  await browser.close()
  await test.close()
}

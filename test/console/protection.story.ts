import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { explain } from '../../console/copy/errors.ts'
import { cuttingProxy } from '../helpers/cutting-proxy.ts'
import { on } from '../helpers/twins.ts'
import { consoleForFile, consoleService, look, person, violations } from './browser.ts'
import { hasFocus, tabTo } from './keys.ts'

const test = await consoleForFile({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
const admin = () => test.account({ username: 'ada', roles: ['admin'] })

/** Another origin, which a person of this server visits. */
async function foreignPage(html: string): Promise<string> {
  const server = createServer((_, reply) => reply.setHeader('content-type', 'text/html').end(html))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it('another origin cannot show it in a frame, nor send a form or a call with the cookie', async () => {
  const ada = await admin()
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'cell_create', params: { data: {} } })
  const visits =
    await foreignPage(`<!doctype html><title>elsewhere</title><iframe src="${test.url}/admin"></iframe>
    <form method="post" enctype="text/plain" action="${test.url}/api/rpc" target="answer"><input name='${call}'></form>
    <iframe name="answer"></iframe>`)
  const page = await person(test, ada.cookie, { visits, expects: /frame|Refused|CORS/i })
  const answers: number[] = []
  page.on('response', (response) => {
    if (response.url().endsWith('/api/rpc')) answers.push(response.status())
  })
  await page.goto(visits)
  expect(await page.frames()[1]?.locator('#root').count()).toBe(0)
  await page.evaluate(() => document.querySelector('form')?.submit())
  await expect.poll(() => answers.length).toBe(1)
  const sent = await page.evaluate(
    ([url, body]) =>
      fetch(`${url}/api/rpc`, { method: 'POST', credentials: 'include', body: body as string }).then(
        () => 'answered',
        () => 'refused',
      ),
    [test.url, call],
  )
  expect(sent).toBe('refused')
  expect(answers.filter((status) => status === 200)).toEqual([])
  expect((await ada.client.cell_list({})).cells).toEqual([])
})

it('injected scripts, eval and markup are stopped by the policy', async () => {
  const ada = await admin()
  const page = await person(test, ada.cookie, { expects: /policy:|Content Security Policy|Trusted/ })
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  const done = await page.evaluate(async () => {
    const broken: string[] = []
    document.addEventListener('securitypolicyviolation', (event) => broken.push(event.violatedDirective))
    const script = document.createElement('script')
    const attempts = [
      () => {
        script.append('window.ran = 1')
        document.body.append(script)
      },
      () => document.body.setAttribute('onclick', 'window.ran = 1'),
      () => Reflect.set(document.body, 'innerHTML', '<img src=x onerror="window.ran = 1">'),
      () => Reflect.construct(Function, ['window.ran = 1'])(),
    ]
    // In a timer, because the policy does not apply to code that a debugger calls.
    for (const attempt of attempts) setTimeout(() => attempt())
    setTimeout(() => document.body.click())
    await new Promise((resolve) => setTimeout(resolve, 200))
    return { ran: 'ran' in window, broken: [...new Set(broken)].length > 0 }
  })
  expect(done).toEqual({ ran: false, broken: true })
  await page.getByRole('heading', { name: 'Home' }).waitFor()
})

it('whoever signs out leaves nothing behind: not after Back, not after a reload, not in another tab', async () => {
  const ada = await admin()
  await ada.client.cell_create({ data: { label: 'Private notes' } })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells')
  await page.getByText('Private notes').waitFor()
  const second = await page.context().newPage()
  await second.goto('/admin/cells')
  await second.getByText('Private notes').waitFor()
  await page.getByRole('link', { name: 'My account' }).click()
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await second.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  for (const one of [page, second]) {
    const kept = await one.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML]),
    )
    expect(kept).not.toContain('Private notes')
    expect(kept).not.toContain(ada.id)
  }
})

it('serves files that it has, and the same bytes to everybody', async () => {
  const ada = await admin()
  const bytes = async (path: string, headers: Record<string, string> = {}) => {
    const reply = await fetch(test.url + path, { headers })
    return { status: reply.status, text: await reply.text() }
  }
  for (const path of ['/admin/..%2fpackage.json', '/admin/.env', '/admin/assets/index-00000000.js.map'])
    expect((await bytes(path)).status, path).toBe(404)
  expect((await bytes('/admin/assets/index-AAAAAAAA.js')).status).toBe(404)
  expect(await bytes('/admin/people')).toEqual(await bytes('/admin/people', { cookie: ada.cookie }))
})

it('an old tab whose files are gone says that there is a new version', async () => {
  const ada = await admin()
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.route('**/admin/assets/*.js', (route) => route.fulfill({ status: 404 }))
  await page.getByRole('link', { name: 'People' }).click()
  await hasFocus(page.getByRole('heading', { name: 'A new version is running' }))
  await look(page, 'new-version')
  await page.unroute('**/admin/assets/*.js')
  await page.getByRole('button', { name: 'Reload' }).click()
  await page.getByRole('heading', { name: 'People' }).waitFor()
})

it('an address that the server does not accept calls from is named, with the setting', async () => {
  await using strict = await consoleService({ allowed_origins: ['https://id.example.com'] })
  const ada = await strict.account({ username: 'ada' })
  const page = await person(strict)
  await page.goto('/admin')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(ada.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText('does not accept calls').waitFor()
  await page.getByText('CELLKEEP_ALLOWED_ORIGINS').waitFor()
})

it('explains each reason for not being ready, and a lost connection, and reads once when it is back', async () => {
  const ada = await admin()
  const page = await person(test, ada.cookie)
  let error = 'db_unreachable'
  await page.route('**/health/ready', (route) => route.fulfill({ status: 503, json: { error } }))
  await page.goto('/admin/status')
  for (error of ['db_unreachable', 'schema_behind', 'shutting_down']) {
    await page.reload()
    const said = explain({ reason: error, data: {}, status: 503 }).replaceAll('`', '')
    await page.getByRole('main').getByText(said.slice(0, 30)).first().waitFor()
  }
  await look(page, 'status-not-ready')
  await page.unroute('**/health/ready')

  await page.goto('/admin/people')
  await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
})

it.each(['/admin/people', '/sign-in'])('%s has a heading where the service does not answer', async (path) => {
  const page = await person(test, undefined, { expects: /Failed to load/ })
  await page.route('**/api/account/status', (route) => route.abort())
  await page.goto(path)
  const heading = page.getByRole('heading', { level: 1, name: 'The server does not answer' })
  await heading.waitFor()
  expect(await page.title()).toBe('The server does not answer · Cellkeep')
  expect(await violations(page)).toEqual([])
  await page.unroute('**/api/account/status')
  await page.getByRole('button', { name: 'Try again' }).click()
  await heading.waitFor({ state: 'hidden' })
})

it('says that the connection is lost, sends nothing meanwhile, and reads what is on screen once when it is back', async () => {
  const ada = await admin()
  const proxy = await cuttingProxy(test.url)
  onTestFinished(() => proxy.close())
  const page = await person({ ...test, url: proxy.url }, ada.cookie)
  await page.goto('/admin/people')
  await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
  proxy.lead('http://127.0.0.1:1')
  proxy.cut()
  await page.getByText('No connection. Trying again.').waitFor()
  await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
  await look(page, 'no-connection')
  // On a phone too, the page is below the bar and nothing covers it.
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('heading', { name: 'People' }).click({ trial: true })
  await page.setViewportSize({ width: 1280, height: 800 })
  await test.account({ username: 'grace' })
  let reads = 0
  page.on('request', (request) => {
    if (request.postData()?.includes('admin_account_list')) reads += 1
  })
  proxy.lead(test.url)
  const isBack = page.getByText('No connection. Trying again.').waitFor({ state: 'detached' })
  // Unless the page has just retried by itself.
  await Promise.race([page.getByRole('button', { name: 'Now', exact: true }).click(), isBack])
  await page.getByRole('link', { name: 'grace' }).waitFor()
  await isBack
  expect(reads).toBeLessThanOrEqual(2)

  await page.keyboard.press('n')
  const create = page.getByRole('dialog').locator('button[type=submit]')
  await expect.poll(() => create.getAttribute('aria-disabled')).toBe(null)
  proxy.lead('http://127.0.0.1:1')
  proxy.cut()
  await expect.poll(() => create.getAttribute('aria-disabled')).toBe('true')
  expect(await create.getAttribute('title')).toBe('No connection. Trying again.')
  proxy.lead(test.url)
  await expect.poll(() => create.getAttribute('aria-disabled')).toBe(null)
})

it('reads by itself what failed while the database was away', async () => {
  await using away = await consoleService()
  const ada = await away.account({ username: 'ada', roles: ['admin'] })
  const page = await person(away, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Latest events' }).waitFor()
  const [, name = ''] = new URL(away.databaseUrl).pathname.split('/')
  const allow = (is: boolean) =>
    on(
      away.databaseUrl.replace(`/${name}`, '/postgres'),
      `alter database ${name} allow_connections ${is}`,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and not ${is}`,
    )
  await allow(false)
  await page.getByRole('link', { name: 'People' }).click()
  await page.getByText('The database cannot be reached right now.').waitFor()
  await allow(true)
  await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
})

it('is whole at 320 pixels, at 400 %, with forced colours, with long words and from right to left', async () => {
  const ada = await admin()
  const long = 'x'.repeat(60)
  await test.account({ username: long.slice(0, 39), email: `${long}@example.com` })
  await ada.client.cell_create({ data: { label: `${long} ${'שלום עולם '.repeat(6)}` }, kind: long })
  const page = await person(test, ada.cookie, { width: 320, height: 640 })
  for (const path of [
    '',
    '/people',
    '/cells',
    '/audit',
    '/audit/live',
    '/me',
    '/roles',
    '/status',
    '/settings',
  ])
    for (const dir of ['ltr', 'rtl']) {
      await page.goto(`/admin${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })
      await page.evaluate((dir) => document.documentElement.setAttribute('dir', dir), dir)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      expect.soft(wide, `${path} ${dir}`).toBeLessThanOrEqual(0)
    }
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
  await page.goto('/admin/people')
  await tabTo(page.getByRole('link', { name: 'ada', exact: true }))
  expect(await violations(page)).toEqual([])
  const ring = await page.evaluate(
    () => getComputedStyle(document.activeElement as Element, '::after').outlineStyle,
  )
  expect(ring).not.toBe('none')
  if (process.env.CELLKEEP_SHOTS) await page.screenshot({ path: `${process.env.CELLKEEP_SHOTS}/forced.png` })
})

import { expect, it } from 'vitest'
import { consoleService, look, person } from './browser.ts'
import { press, tabTo } from './keys.ts'

it('shows the state of the server, and calls its methods', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/status')
  await page.getByText('connected', { exact: true }).nth(1).waitFor()
  await page.getByText(/^\d+ busy, \d+ idle, of \d+/).waitFor()
  await look(page, 'status')
  await page.goto('/admin/api')
  await page.getByLabel('Find a method').fill('account_v')
  await page.getByRole('link', { name: 'account_verify' }).click()
  await page.getByRole('button', { name: 'Call' }).click()
  await page.getByText('Answered in').waitFor()
  await page.getByText(ada.id).waitFor()
  await look(page, 'api')
  await page.goto('/admin/api?method=cell_create')
  await page.getByLabel('data (required)').fill('{"label": "Made here"}')
  await page.getByRole('button', { name: 'Call', exact: true }).click()
  await page.getByText('This changes real data.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Call' }).click()
  await page.getByText('Answered in').waitFor()
  expect((await ada.client.cell_list({})).cells).toHaveLength(1)
})

it('features that are off are absent, and nothing asks for them', async () => {
  await using test = await consoleService({
    ws: false,
    audit_stream: false,
    openrpc: 'off',
    app_settings: false,
  })
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  page.on('websocket', (socket) => asked.push(socket.url()))
  await page.goto('/admin/audit')
  await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  expect(await page.getByRole('link', { name: 'Live' }).count()).toBe(0)
  for (const name of ['Settings', 'API'])
    expect(await page.getByRole('link', { name, exact: true }).count()).toBe(0)
  await page.goto('/admin/audit/live')
  await page.getByRole('button', { name: 'Export' }).waitFor()
  for (const path of ['/admin/settings', '/admin/api']) {
    await page.goto(path)
    await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor()
  }
  expect(asked.filter((path) => /^ws|^\/api\/.*(ws|stream|openrpc)/.test(path))).toEqual([])
})

it('by keyboard alone: shortcuts, rows, menus; focus is never lost', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
  await look(page, 'shortcuts')
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await page.getByRole('link', { name: 'grace' }).waitFor()
  await expect.poll(focused).toBe('People')
  await tabTo(page.getByRole('link', { name: 'ada', exact: true }))
  await page.keyboard.press('j')
  expect(await focused()).toBe('grace')
  await page.keyboard.press('Enter')
  await expect.poll(focused).toBe('grace')
  await press(page.getByRole('button', { name: 'More actions' }))
  for (const item of ['Change username', 'Change e-mail', 'Sign out everywhere', 'Revoke all tokens']) {
    await expect.poll(focused).toBe(item)
    if (item !== 'Revoke all tokens') await page.keyboard.press('ArrowDown')
  }
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  expect(await focused()).toBe('Cancel')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY')
  await page.goBack()
  await page.getByRole('heading', { name: 'People' }).waitFor()
})

it('says so where it cannot reach what it needs, and nothing where it can', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie, { expects: /dynamically imported module/ })
  await page.goto('/admin')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.context().setOffline(true)
  await page.getByRole('link', { name: 'Roles' }).click()
  await page.getByRole('main').getByText('There is no connection to the server.').waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Roles' }).waitFor()

  // A record on screen that cannot be read again stays, and the page says so.
  await page.goto(`/admin/people/${grace.id}`)
  await page.getByRole('heading', { name: 'grace', exact: true }).waitFor()
  await expect.poll(() => test.service.app.hub.count().streams).toBe(1)
  await page.route('**/api/rpc', (route) => {
    const { id, method } = route.request().postDataJSON()
    const error = { code: -32603, message: 'no', data: { reason: 'internal_error' } }
    if (method !== 'admin_account_get') return route.continue()
    return route.fulfill({ status: 500, json: { jsonrpc: '2.0', id, error } })
  })
  await test.sessions.create(grace.id)
  await grace.client.account_token_create({
    name: 'x',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  await page.getByRole('alert').getByText('The server failed.').waitFor()
  await page.getByRole('heading', { name: 'grace', exact: true }).waitFor()

  // Behind a proxy that lets no socket through, calls still work.
  const hers = await person(test, grace.cookie)
  const { cell } = await ada.client.cell_create({ data: { label: 'Open' }, visibility: 'public' })
  const tried = Promise.withResolvers<void>()
  await hers.routeWebSocket(/\/api\/ws/, async (socket) => {
    await socket.close({ code: 1011 })
    tried.resolve()
  })
  // The page does not ask for the parts that she may not see.
  await hers.goto(`/admin/cells/${cell.id}/timeline`)
  await tried.promise
  await hers.getByRole('tree').waitFor()
  expect(await hers.getByRole('alert').count()).toBe(0)
  expect(await hers.getByText('No connection').count()).toBe(0)
})

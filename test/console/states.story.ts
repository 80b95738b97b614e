import type { Page } from 'playwright-core'
import { it } from 'vitest'
import { check, consoleForFile, person } from './browser.ts'

const test = await consoleForFile({
  roles: [
    { name: 'editor', description: 'May edit what is shared', grant_paths: ['admin'] },
    { name: 'reader', grant_paths: ['admin', 'self_service'] },
    { name: 'teacher', grant_paths: ['admin'], applicable_scope_kinds: ['room'] },
  ],
  self_service_roles: ['reader'],
  scope_kinds: [{ name: 'room' }],
  deliver: () => {},
  username_change: 'self',
})
const nobody = '0190f000-0000-7000-8000-000000000000'
const scope_id = '3b241101-e2bb-4255-8caf-4136c566a962'

/** Goes to a page as a link does, without loading the console again. */
async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(async (path) => {
    history.pushState({}, '', `/admin${path}`)
    dispatchEvent(new PopStateEvent('popstate'))
    const frame = () => new Promise(requestAnimationFrame)
    for (let n = 0; n < 2; n++) await frame()
    while (!document.querySelector('main h1')) await frame()
  }, path)
}
const isLoaded = (page: Page) =>
  page.waitForFunction(() => !document.querySelector('main [aria-busy=true], main .skeleton'))

const cell = ['', '/relations', '/items', '/sharing', '/why', '/timeline']
const one = ['', '/sign_in', '/sessions', '/tokens', '/offers', '/cells', '/audit']
const own = ['/me/security', '/me/sessions', '/me/tokens']
const lists = [
  '/',
  '/inbox',
  '/inbox/sent',
  '/inbox/history',
  '/cells',
  ...own,
  '/people',
  '/roles',
  '/roles/editor',
]
const rest = ['/invites', '/messages', '/settings', '/audit', '/audit/1', '/status', '/api']

it('every page while it loads, and when loading is refused', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const made = (await ada.client.cell_create({ data: { label: 'Plan' } })).cell.id
  const parts = [
    { path: `/cells/${made}`, all: cell, head: 'cell_get' },
    { path: `/people/${ada.id}`, all: one, head: 'admin_account_get' },
  ]
  const paths = [...lists, ...rest, ...parts.flatMap(({ path, all }) => all.map((part) => path + part))]
  const request_id = 'b54adc00-67f9-41f0-b2d8-0d0a2c2b9b6a'
  for (const state of ['[aria-busy=true]', '[role=alert]']) {
    const page = await person(test, ada.cookie)
    await page.goto('/admin/nothing')
    await page.locator('main h1').waitFor()
    // A part of a page is read only once its head is there, so the head is let through.
    let heads: string[] = []
    await page.route(/\/api\/(rpc|openrpc)|\/(health|ready)/, async (route) => {
      const sent = route.request().postDataJSON() as { id: number; method: string } | null
      if (sent && heads.includes(sent.method)) return route.continue()
      if (state === '[aria-busy=true]') return
      const error = { code: -32603, message: 'no', data: { reason: 'internal_error', request_id } }
      await route.fulfill({ status: 500, json: sent ? { jsonrpc: '2.0', id: sent.id, error } : error })
    })
    for (const path of paths) {
      const head = parts.find((one) => path.startsWith(`${one.path}/`))?.head
      heads = head ? [head] : []
      await visit(page, path)
      await page.locator(`main ${state}`).first().waitFor({ state: 'attached' })
      await check(page, `${path} ${state}`)
    }
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.context().close()
  }
})

it('every page that has nothing to show: nothing yet, nothing found, no such thing', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin')
  await page.getByText('1 of 5').waitFor()
  await check(page, 'new /')
  const empty = [
    '/inbox',
    '/inbox/sent',
    '/inbox/history',
    ...['', 'mine', 'shared', 'public'].map((one) => `/cells?view=${one}`),
  ]
  const none = ['/cells?kind=none', '/people?q=zz', '/audit?event=cell_clone', '/messages?state=failed']
  const missing = [
    '/nothing',
    '/roles/nothing',
    '/audit/999999',
    ...['cells', 'people', 'go'].map((of) => `/${of}/${nobody}`),
    '/cells/no-uuid',
  ]
  const own = [
    '/me/tokens',
    '/me/roles',
    '/me/security',
    '/roles/editor',
    '/invites',
    '/messages',
    '/audit/live',
    '/api',
  ]
  const hers = one.map((part) => `/people/${grace.id}${part}`)
  for (const path of [...empty, ...none, ...missing, ...own, ...hers]) {
    await visit(page, path)
    await isLoaded(page)
    await check(page, `nothing ${path}`)
  }
  await visit(page, '/people/no-uuid')
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  const made = (await ada.client.cell_create({ data: {} })).cell.id
  for (const part of cell) {
    await visit(page, `/cells/${made}${part}`)
    await isLoaded(page)
    await check(page, `nothing /cells/id${part}`)
  }
})

/** Two admins and what they have, with names as long as allowed. */
async function longNames() {
  const long = 'w'.repeat(64)
  const [domain, word] = ['example.com', 'Donaudampfschifffahrt']
  const ada = await test.account({
    username: 'a'.repeat(39),
    email: `${long}@${domain}`,
    roles: ['admin', 'editor'],
  })
  const grace = await test.account({ username: 'g'.repeat(39), email: `g${long.slice(1)}@${domain}` })
  const label = word.repeat(12)
  const data = { label, [long]: label }
  const [{ cell: made }, { cell: other }] = [
    await ada.client.cell_create({ data, kind: long, path: null }),
    await ada.client.cell_create({ data, kind: long }),
  ]
  const [cell_id, child_id] = [made.id, other.id]
  await ada.client.cell_update({ cell_id, path: `/${long}/${long}` })
  await ada.client.cell_item_insert({ parent_id: cell_id, child_id, position: '1' })
  await ada.client.cell_field_set({ source_id: cell_id, name: long, target_id: child_id })
  await ada.client.cell_grant_create({ cell_id, level: 'viewer', principal: { actor_id: grace.actor_id } })
  await ada.client.cell_grant_create({ cell_id, level: 'editor', principal: { role: 'editor', scope_id } })
  const scope = { kind: 'methods' as const, methods: ['cell_get', 'cell_list'] }
  for (const { client } of [ada, grace])
    await client.account_token_create({ name: long, scope, lifetime: { kind: 'ttl', days: 30 } })
  const to_account_id = grace.id
  await ada.client.role_grant_assign({ to_account_id, role: 'teacher', scope_kind: 'room', scope_id })
  await ada.client.role_grant_assign({ to_account_id, role: 'reader' })
  await ada.client.role_grant_offer_create({ to_account_id, role: 'editor', message: label.slice(0, 200) })
  await ada.client.self_service_role_set({ role: 'reader', enabled: true })
  await ada.client.invite_create({ email: `i${long.slice(1)}@${domain}`, username: 'i'.repeat(39) })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me')
  await page.getByRole('heading', { name: 'My account' }).waitFor()
  return { page, ofCell: `/cells/${cell_id}`, ofPerson: `/people/${grace.id}`, token: long, hers: grace }
}

it('every page with names, texts and ids as long as they can be', async () => {
  const { page, ofCell, ofPerson, hers } = await longNames()
  const parts = [...cell.map((part) => ofCell + part), ...one.map((part) => ofPerson + part)]
  for (const path of [
    ...lists,
    ...rest.filter((path) => path !== '/audit/1'),
    ...parts,
    '/me',
    '/me/roles',
    `${ofCell}?edit=1`,
  ]) {
    await visit(page, path)
    await isLoaded(page)
    await check(page, `long ${path}`)
  }
  const inbox = await person(test, hers.cookie)
  await inbox.goto('/admin/inbox')
  await inbox.getByRole('button', { name: 'Accept editor' }).waitFor()
  await check(inbox, 'long inbox')
})

it('every dialog and menu, with names as long as they can be', async () => {
  const { page, ofCell, ofPerson, token } = await longNames()
  /** What is clicked in turn until the dialog or menu is open. */
  const opened: [path: string, ...clicked: string[]][] = [
    ...['Change username', 'Change name', 'Change e-mail', 'Change password'].map((one) => ['/me', one]),
    ['/me/sessions', 'Sign out everywhere'],
    ['/me/tokens?dialog=token', 'Chosen methods Only those you choose.'],
    ['/me/tokens', `Revoke ${token}`],
    ['/me/roles', 'Give up reader'],
    ['/me/security', 'Add an authenticator'],
    ['/cells?dialog=new'],
    [ofCell, 'More actions'],
    ...['Make public', 'Change path', 'Copy cell', 'Delete cell'].map((item) => [
      ofCell,
      'More actions',
      item,
    ]),
    [`${ofPerson}?dialog=give&role=teacher`],
    [ofPerson, 'End reader everywhere'],
    ...['Change username', 'Change e-mail', 'Sign out everywhere', 'Revoke all tokens', 'Delete account'].map(
      (item) => [ofPerson, 'More actions', item],
    ),
    [`${ofPerson}/tokens`, `Revoke ${token}`],
    ['/invites?dialog=invite', 'Create invite'],
    ['/settings', 'Open sign-up'],
    ['/audit?dialog=export'],
    ['/api?method=account_session_revoke_all', 'Call'],
  ] as never
  const control = (name: string) => {
    const by = (role: 'button' | 'menuitem' | 'radio' | 'switch') =>
      page.getByRole('main').getByRole(role, { name, exact: true })
    return by('button').or(by('menuitem')).or(by('radio')).or(by('switch')).last()
  }
  for (const [path, ...clicked] of opened) {
    await visit(page, '/nothing')
    await visit(page, path)
    await isLoaded(page)
    for (const name of clicked) await control(name).click()
    await page.locator('dialog[open], [popover]:popover-open').first().waitFor()
    await isLoaded(page)
    await check(page, `${path} ${clicked}`)
  }
  await visit(page, '/')
  await page.locator('.rail-more').evaluate((more: HTMLDetailsElement) => {
    more.open = true
  })
  await check(page, 'the rest of the links on a phone')
})

it('the pages of people who are not signed in, and a server that does not answer', async () => {
  await test.account()
  const page = await person(test)
  const is = (name: string) => page.getByRole('heading', { name }).waitFor()
  const pages = { '/': 'Welcome', '/sign-up': 'Create an account', '/invite': 'Create an account' }
  for (const [path, name] of Object.entries(pages)) {
    await page.goto(path)
    await is(name)
    await check(page, path)
  }
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByText('Use 12 or more characters.').first().waitFor()
  await check(page, 'mistakes in a sign-up')
  await page.goto('/sign-in')
  await page.getByRole('button', { name: 'Forgot your password?' }).click()
  await check(page, 'a new password')
  await page.getByLabel('Username or e-mail').fill('ada')
  await page.keyboard.press('Enter')
  await page.getByText('If there is such an account').waitFor()
  await check(page, 'a new password asked for')
  await page.goto('/admin/link#ticket=no')
  await page.locator('main').getByRole('alert').or(page.getByRole('status')).first().waitFor()
  await check(page, 'a link that is none')
  await page.route(/\/api\//, (route) => route.abort())
  for (const path of ['/admin', '/sign-in']) {
    await page.goto(path)
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    await check(page, `no answer ${path}`)
  }
})

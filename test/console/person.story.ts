import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import type { TestAccount } from '../../src/testing/index.ts'
import { auditRows } from '../helpers/audit-rows.ts'
import { consoleForFile, look, person } from './browser.ts'
import { toTheEnd } from './rows.ts'

const test = await consoleForFile({
  roles: [
    { name: 'editor', description: 'May edit what is shared', grant_paths: ['admin'] },
    { name: 'reader', description: 'Gets the newsletter', grant_paths: ['admin', 'self_service'] },
    { name: 'teacher', grant_paths: ['admin'], applicable_scope_kinds: ['room'] },
  ],
  self_service_roles: ['reader'],
  scope_kinds: [{ name: 'room' }],
  deliver: () => {},
  username_change: 'self',
  max_tokens: 2,
})
const admin = () => test.account({ username: 'ada', roles: ['admin'] })
const scope_id = '3b241101-e2bb-4255-8caf-4136c566a962'

async function opened(account: TestAccount, path: string): Promise<Page> {
  const page = await person(test, account.cookie)
  await page.goto(path)
  return page
}

it('a person: where a role is from, its history, other names, and ways to sign in, each ended after a question', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace' })
  await ada.client.role_grant_assign({ to_account_id: grace.id, role: 'editor', expires_at: null })
  const lifetime = { kind: 'ttl', days: 30 } as const
  await grace.client.account_token_create({ name: 'deploy-bot', scope: { kind: 'full' }, lifetime })
  const hers = await opened(grace, '/admin/me')
  await hers.getByRole('heading', { name: 'My account' }).waitFor()

  const page = await opened(ada, `/admin/people/${grace.id}`)
  await page.getByText('ada gave grace editor').waitFor()
  await page.getByTitle('How it was given').click()
  await page.getByText('assigned').waitFor()
  await look(page, 'role-origin')
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change username' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('hopper')
  await look(page, 'person-username')
  await page.getByRole('button', { name: 'Change username' }).click()
  await page.getByRole('heading', { name: 'hopper', level: 1 }).waitFor()
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change e-mail' }).click()
  await page.getByRole('textbox', { name: 'E-mail' }).fill('grace@example.com')
  await page.getByLabel('Mark it as verified').check()
  await page.getByRole('button', { name: 'Change e-mail' }).click()
  await page.getByText('grace@example.com').waitFor()
  expect((await grace.client.account.status()).account).toMatchObject({
    username: 'hopper',
    email: 'grace@example.com',
    email_verified: true,
  })
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change e-mail' }).click()
  const known = page.getByLabel('Mark it as verified')
  expect(await known.isChecked()).toBe(true)
  await page.getByRole('textbox', { name: 'E-mail' }).fill('grace@example.org')
  await expect.poll(() => known.isChecked()).toBe(false)
  page.once('dialog', (question) => question.accept())
  await page.keyboard.press('Escape')

  await page.getByRole('link', { name: /^Tokens/ }).click()
  await page.getByRole('button', { name: 'Revoke deploy-bot' }).click()
  await page.getByText('It has not been used yet.').waitFor()
  await look(page, 'person-token-revoke')
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('No tokens.').waitFor()
  await page.getByRole('link', { name: /^Sessions/ }).click()
  await look(page, 'person-sessions')
  await page.getByRole('button', { name: /^End/ }).first().click()
  await page.getByText('is signed out within seconds.').waitFor()
  await page.getByRole('button', { name: 'End session' }).click()
  await hers.getByRole('heading', { name: 'You were signed out' }).waitFor()
  await page.getByText('Not signed in anywhere.').waitFor()
})

it('a deletion says what it ends, as stored, and why it is refused', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace', roles: ['editor'] })
  const lifetime = { kind: 'eternal' } as const
  for (const name of ['one', 'two'])
    await grace.client.account_token_create({ name, scope: { kind: 'full' }, lifetime })
  for (const n of [1, 2, 3]) await grace.client.cell_create({ data: { n } })
  await test.roleGrant({ actor_id: ada.actor_id, role: 'reader' })
  await ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'reader' })
  const { counts } = await ada.client.account_delete_preview({ account_id: grace.id })
  expect(counts).toEqual({ sessions: 1, tokens: 2, role_grants: 1, offers: 1, cells: 3 })
  const page = await opened(ada, `/admin/people/${grace.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete account' }).click()
  const dialog = page.getByRole('dialog')
  await dialog
    .getByText('1 session and 2 tokens end now. 1 role stops working, 1 offer stays. 3 cells stay, with')
    .waitFor()
  await dialog.getByLabel('Type grace to confirm').fill('grace')
  await dialog.getByRole('button', { name: 'Delete grace' }).click()
  await page.getByText(/^Deleted .* by ada\. Roles return/).waitFor()
  await page.getByText(`cellkeep account purge ${grace.id}`).waitFor()

  await page.goto(`/admin/people/${ada.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete account' }).click()
  await dialog.getByText('This is the last admin').first().waitFor()
  await look(page, 'delete-person-refused')
})

it('a retracted offer leaves no dead button, and the reason of a refusal reaches the grantor', async () => {
  const ada = await admin()
  await test.roleGrant({ actor_id: ada.actor_id, role: 'editor' })
  const grace = await test.account({ username: 'grace' })
  const offer = () => ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'editor' })
  await offer()
  const hers = await opened(grace, '/admin/inbox')
  await hers.getByRole('button', { name: 'Decline editor' }).click()
  const page = await opened(ada, `/admin/people/${grace.id}`)
  await page.getByRole('button', { name: 'Take back editor' }).click()
  await page.getByText('The offer of editor was taken back.').waitFor()
  await hers.getByText('The offer of editor was taken back.').waitFor()
  await hers.getByText('No offers').waitFor()
  expect(await hers.getByRole('dialog').count()).toBe(0)

  await offer()
  await hers.getByRole('button', { name: 'Decline editor' }).click()
  await hers.getByLabel('Reason').fill('Too much to do')
  await look(hers, 'decline')
  await hers.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
  await page.getByText('Your offer of editor was declined: “Too much to do”').waitFor()
})

it('the end of a role reaches the server exactly, on both sides of a change of clocks', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace' })
  const page = await opened(ada, `/admin/people/${grace.id}`)
  for (const [local, utc] of [
    ['2027-03-28T01:59', '2027-03-28T00:59'],
    ['2027-03-28T03:00', '2027-03-28T01:00'],
    ['2027-06-01T09:00', '2027-06-01T07:00'],
  ] as const) {
    await page.getByRole('button', { name: 'Give role' }).click()
    await page.getByRole('combobox', { name: 'Role' }).selectOption('teacher')
    await page.getByLabel('In one place').check()
    await page.getByLabel('Id of the place').fill(scope_id)
    await page.getByRole('combobox', { name: 'Ends' }).selectOption('custom')
    await page.getByRole('button', { name: 'Assign teacher' }).click()
    await page.getByText('Choose a time in the future.').waitFor()
    await page.getByLabel('Ends at').fill(local)
    await page.getByText(`Europe/Berlin · ${utc.replace('T', ' ')} UTC · in`).waitFor()
    if (local === '2027-06-01T09:00') await look(page, 'give-role-custom')
    await page.getByRole('button', { name: 'Assign teacher' }).click()
    await page.getByText('grace now holds teacher.').first().waitFor()
    await expect
      .poll(async () => (await grace.client.account.status()).role_grants.map((one) => one.expires_at))
      .toEqual([`${utc}:00.000Z`])
  }
})

it('a role is given on its own page, and a self-service role is taken and given up', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace' })
  const page = await opened(ada, '/admin/roles/editor')
  await page.getByText('Nobody holds it').waitFor()
  await page.getByRole('button', { name: 'Give to somebody' }).click()
  await page.getByLabel('Name or e-mail').fill('gra')
  await page.getByRole('dialog').getByRole('link', { name: 'ada' }).waitFor({ state: 'detached' })
  await look(page, 'role-give')
  await page.getByRole('dialog').getByRole('link', { name: 'grace' }).click()
  await expect.poll(() => page.getByRole('combobox', { name: 'Role' }).inputValue()).toBe('editor')
  await page.getByRole('button', { name: 'Assign editor' }).click()
  await page.getByText('grace now holds editor.').waitFor()
  await page.goto('/admin/roles')
  await page.getByRole('link', { name: 'editor' }).click()
  await page.getByText('ada gave grace editor').waitFor()
  await page.getByRole('link', { name: 'grace' }).waitFor()
  await look(page, 'role-held')
  await page.goto('/admin/roles/nothing')
  await page.getByText('There is no such role.').waitFor()

  const hers = await opened(grace, '/admin/me/roles')
  await hers.getByRole('button', { name: 'Take reader' }).click()
  await hers.getByText('You now hold reader.').waitFor()
  await hers.getByRole('button', { name: 'Give up reader' }).waitFor()
  await look(hers, 'me-roles-taken')
  await hers.getByTitle('How it was given').last().click()
  await hers.getByText('self-assigned').waitFor()
  await hers.keyboard.press('Escape')
  await hers.getByRole('button', { name: 'Give up reader' }).click()
  await hers.getByRole('dialog').getByRole('button', { name: 'Give up' }).click()
  await hers.getByRole('button', { name: 'Take reader' }).waitFor()
  expect(await hers.getByRole('button', { name: 'Give up editor' }).count()).toBe(0)
})

it('the history of a role looks back as far as one asks', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace' })
  await ada.client.role_grant_assign({ to_account_id: grace.id, role: 'editor' })
  await auditRows(test, 420, {
    event_type: sql`'role_grant_revoke'`,
    metadata: sql`'{"role": "teacher"}'::jsonb`,
  })
  const page = await opened(ada, '/admin/roles/editor')
  const back = page.getByRole('button', { name: 'Look further back' })
  await page.getByText('Among the last 200 changes of roles.').waitFor()
  await page.getByText('No changes of this role found.').waitFor()
  await back.click()
  await page.getByText('Among the last 400 changes of roles.').waitFor()
  await page.getByText('No changes of this role found.').waitFor()
  await back.click()
  await page.getByText('Among all changes of roles that are kept.').waitFor()
  await page.getByText('ada gave grace editor').waitFor()
  expect(await back.count()).toBe(0)
})

it('one’s own names: a new username and a link to a new e-mail, of which admins see the message', async () => {
  const ada = await admin()
  const page = await opened(ada, '/admin/me')
  await page.getByRole('button', { name: 'Change username' }).click()
  await page.getByRole('textbox', { name: 'Username' }).fill('lovelace')
  await page.getByRole('dialog').getByRole('button', { name: 'Change username' }).click()
  await page.getByText('Username changed.').waitFor()
  await page.getByRole('button', { name: 'Change name' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Ada L.')
  await page.getByRole('dialog').getByRole('button', { name: 'Change name' }).click()
  await page.locator('dd').getByText('Ada L.').waitFor()
  await page.getByRole('button', { name: 'Change e-mail' }).click()
  await page.getByRole('textbox', { name: 'E-mail' }).fill('ada@example.com')
  await look(page, 'change-email')
  await page.getByRole('dialog').getByRole('button', { name: 'Change e-mail' }).click()
  await page.getByText('A link is on its way to ada@example.com.').waitFor()
  await look(page, 'me-names')
  await expect.poll(() => test.messages.map(({ purpose }) => purpose)).toContain('email_change')
  await page.goto('/admin/messages')
  await page.getByText('link that confirms a new e-mail').waitFor()
  await expect.poll(() => page.getByRole('row').filter({ hasText: 'sent' }).count()).toBeGreaterThan(0)
  await look(page, 'messages')
  await page.getByLabel('State').selectOption('failed')
  await page.getByText('No message matches this filter.').waitFor()
})

it('a token too many names the one that it ends', async () => {
  const ada = await test.account({ username: 'ada' })
  const lifetime = { kind: 'eternal' } as const
  for (const name of ['first', 'second'])
    await ada.client.account_token_create({ name, scope: { kind: 'full' }, lifetime })
  const page = await opened(ada, '/admin/me/tokens?dialog=token')
  await page.getByText('a new one ends the oldest, “first”.').waitFor()
  await page.getByLabel('Name').fill('third')
  await page.getByRole('combobox', { name: 'Ends' }).selectOption('custom')
  await page.getByLabel('Days').fill('400')
  await look(page, 'token-too-many')
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Revoke third' }).waitFor()
  const { tokens } = await ada.client.account_token_list({})
  expect(tokens.map(({ name }) => name).sort()).toEqual(['second', 'third'])
  const third = tokens.find(({ name }) => name === 'third')
  expect(Math.round((Date.parse(third?.expires_at ?? '') - Date.now()) / 86_400_000)).toBe(400)
})

it('pages of admins follow what others do', async () => {
  const ada = await admin()
  const page = await opened(ada, '/admin/people')
  await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
  await expect.poll(() => test.service.app.hub.count().streams).toBe(1)
  await test.account({ username: 'newcomer' })
  await page.getByRole('link', { name: 'newcomer' }).waitFor()
})

it('Back from the last of twenty thousand people returns to its row, where it was', async () => {
  const ada = await admin()
  // `npm run bench:console` does the same with 100,000, which takes a minute.
  await test.service.app.db.run(sql`
    insert into account (username, password_hash, created_at)
    select name, '!', now() - i * interval '1 minute' from generate_series(1, 20000) i, lateral (select 'many' || i as name) named`)
  const page = await opened(ada, '/admin/people')
  await page.getByText(/ loaded$/).waitFor()
  await toTheEnd(page, 20_001)
  expect(await page.getByRole('row').count()).toBeLessThan(100)
  // The first account is the last row.
  const last = page.getByRole('link', { name: 'ada', exact: true })
  const before = await last.boundingBox()
  expect(before?.y).toBeLessThan(800)
  await last.click()
  await page.getByRole('heading', { name: 'ada', level: 1 }).waitFor()
  await page.goBack()
  await last.waitFor()
  await expect.poll(() => last.boundingBox()).toEqual(before)
})

it('a dialog that names somebody shows which account that is, because two names may look the same', async () => {
  const ada = await admin()
  await test.account({ username: 'gracel' })
  const other = await test.account({ username: 'grace1' })
  await test.sessions.create(other.id)
  await other.client.account_token_create({
    name: 'nightly',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  await test.roleGrant({ actor_id: other.actor_id, role: 'editor' })
  const page = await opened(ada, `/admin/people/${other.id}`)
  const dialog = page.getByRole('dialog')
  const id = dialog.getByRole('button', {
    name: `Copy the id ${other.id.slice(0, 4)}..${other.id.slice(-4)}`,
  })
  const menu = [
    'Change username',
    'Change e-mail',
    'Sign out everywhere',
    'Revoke all tokens',
    'Delete account',
  ]
  for (const [part, ...clicked] of [
    ...menu.map((item) => ['', 'More actions', item]),
    ['', 'Give role'],
    ['', 'End editor everywhere'],
    ['/sign_in', 'Create a reset link'],
    ['/sessions', /^End /],
    ['/tokens', 'Revoke nightly'],
  ] as const) {
    await page.goto(`/admin/people/${other.id}${part}`)
    for (const name of clicked)
      await page
        .getByRole('main')
        .getByRole(menu.includes(name as string) ? 'menuitem' : 'button', { name })
        .first()
        .click()
    await id.waitFor()
    if (clicked.includes('Delete account')) await look(page, 'delete-namesake')
  }
  await page.getByRole('button', { name: 'Cancel' }).press('Shift+Tab')
  await id.press('Enter')
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(other.id)
})

it('a purged person has the last name that the audit log knows, and what happened', async () => {
  const ada = await admin()
  const grace = await test.account({ username: 'grace', email: 'grace@example.com' })
  await ada.client.role_grant_assign({ to_account_id: grace.id, role: 'editor' })
  await test.account({ roles: ['keeper'] })
  await test.daemonClient().account_purge({ account_id: grace.id, confirm: true })
  const page = await opened(ada, `/admin/people/${grace.id}`)
  await page.getByRole('heading', { name: 'grace', level: 1 }).waitFor()
  await page.getByText('The audit log keeps the last name').waitFor()
  await page.getByText('purged the account grace').waitFor()
  await page.getByText(/^ada gave .* editor/).waitFor()
  await look(page, 'purged-person')
  await page.goto('/admin/people/0190f000-0000-7000-8000-000000000000')
  await page.getByRole('alert').getByText('There is no such account').waitFor()
})

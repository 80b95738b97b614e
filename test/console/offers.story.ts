import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { sql } from '../../src/db/db.ts'
import type { TestAccount } from '../../src/testing/index.ts'
import { consoleForFile, look, person } from './browser.ts'

const test = await consoleForFile({
  roles: [
    { name: 'editor', grant_paths: ['admin'] },
    { name: 'teacher', grant_paths: ['admin'], applicable_scope_kinds: ['room'] },
  ],
  scope_kinds: [{ name: 'room' }],
})
const scope_id = '3b241101-e2bb-4255-8caf-4136c566a962'
const admin = (username: string) => test.account({ username, roles: ['admin', 'editor'] })

async function opened(account: TestAccount, path: string): Promise<Page> {
  const page = await person(test, account.cookie)
  await page.goto(path)
  return page
}
/** Switches the actor by one click in the menu of the account. */
async function actAs(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await page.getByRole('menuitemradio', { name: `Act as ${name}` }).click()
}

it('with several actors one acts as the chosen one: lists, pages, socket and stream, also after a reload', async () => {
  const ada = await admin('ada')
  const night = await test.actor(ada.id, 'Night shift')
  for (const [label, acting] of [
    ['By day', ada.actor_id],
    ['By night', night],
  ])
    await ada.client.cell_create({ data: { label }, acting } as never)
  const bob = await admin('bob')
  await bob.client.role_grant_offer_create({ to_account_id: ada.id, to_actor_id: night, role: 'editor' })
  const page = await opened(ada, '/admin/cells?view=mine')
  await page.getByRole('link', { name: 'By day' }).waitFor()
  expect(await page.getByRole('link', { name: 'By night' }).count()).toBe(0)
  await page.getByRole('link', { name: 'Inbox 1 offer' }).waitFor()
  const open = () => test.service.app.hub.count()
  await page.getByRole('link', { name: 'People' }).click()
  await expect.poll(open).toMatchObject({ streams: 1, sockets: 1 })
  await page.goBack()
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await look(page, 'actors')
  await page.keyboard.press('Escape')
  await actAs(page, 'Night shift')
  await page.getByRole('link', { name: 'By night' }).waitFor()
  expect(await page.getByRole('link', { name: 'By day' }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'People' }).count()).toBe(0)
  await page.getByRole('link', { name: 'Inbox 1 offer' }).waitFor()
  await expect.poll(open).toMatchObject({ streams: 0, sockets: 1 })
  // The pages of the whole account work with any actor.
  for (const [part, shown] of [
    ['tokens', 'No tokens'],
    ['sessions', 'This device'],
  ]) {
    await page.goto(`/admin/me/${part}`)
    await page
      .getByText(shown as string)
      .first()
      .waitFor()
  }
  await page.goto('/admin/audit')
  await page.getByText('You act as Night shift.').waitFor()
  await page.reload()
  await page.getByText('You act as Night shift.').waitFor()

  // Any actor of the account can accept an offer to another, which holds the role at once.
  await actAs(page, 'ada')
  await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  await expect.poll(open).toMatchObject({ streams: 1, sockets: 1 })
  await page.getByRole('link', { name: /^Inbox/ }).click()
  await page.getByRole('button', { name: 'Accept as Night shift editor' }).click()
  await page.getByText('You now hold editor.').waitFor()
  await page.getByText('No offers').waitFor()
  const { actors } = await bob.client.admin_account_get({ account_id: ada.id })
  expect(actors.find(({ id }) => id === night)?.role_grants).toMatchObject([{ role: 'editor' }])
})

it('a role for a person with several actors is for one of them; a scoped admin is no admin', async () => {
  const ada = await admin('ada')
  const grace = await test.account({ username: 'grace' })
  await test.roleGrant({ actor_id: grace.actor_id, role: 'admin', scope_kind: 'room', scope_id })
  const hers = await opened(grace, '/admin/people')
  await hers.getByRole('heading', { name: 'Admins only' }).waitFor()

  const night = await test.actor(grace.id, 'Night shift')
  const page = await opened(ada, `/admin/people/${grace.id}?dialog=give`)
  await page.getByRole('combobox', { name: 'Role' }).selectOption('teacher')
  await page.getByRole('button', { name: 'Assign teacher' }).click()
  await page.getByText('This person has several actors. Choose one.').waitFor()
  await look(page, 'give-role-actor')
  await page.getByRole('combobox', { name: 'For the actor' }).selectOption('Night shift')
  await page.getByRole('button', { name: 'Assign teacher' }).click()
  await page.getByText('grace now holds teacher.').waitFor()
  const { actors } = await ada.client.admin_account_get({ account_id: grace.id })
  expect(actors.find(({ id }) => id === night)?.role_grants).toMatchObject([{ role: 'teacher' }])
  expect(actors.find(({ id }) => id === grace.actor_id)?.role_grants).toMatchObject([{ role: 'admin' }])

  await page.getByRole('button', { name: 'Give role' }).click()
  await page.getByRole('combobox', { name: 'Role' }).selectOption('teacher')
  const holds = page.getByRole('dialog').getByText('Already holds it')
  await page.getByRole('combobox', { name: 'For the actor' }).selectOption('Night shift')
  await holds.waitFor()
  await page.getByRole('combobox', { name: 'For the actor' }).selectOption('grace')
  await expect.poll(() => holds.count()).toBe(0)
})

it('offering again changes the offer that waits, and accepting one ends the others of that role', async () => {
  const [ada, bob] = [await admin('ada'), await admin('bob')]
  const grace = await test.account({ username: 'grace' })
  const hers = await opened(grace, '/admin/inbox')
  await hers.getByText('No offers').waitFor()
  const page = await opened(ada, `/admin/people/${grace.id}`)
  const offer = async (note: string): Promise<void> => {
    await page.getByRole('button', { name: 'Give role' }).click()
    await page.getByRole('combobox', { name: 'Role' }).selectOption('editor')
    await page.getByLabel('Note').fill(note)
  }
  const send = () => page.getByRole('button', { name: 'Offer editor' }).click()
  await offer('The first time')
  expect(await page.getByText('You have already offered it.').count()).toBe(0)
  await send()
  await hers.getByText('The first time').waitFor()
  await page.getByText('answer by').waitFor()
  await offer('The second time')
  await page.getByText('You have already offered it. This replaces its note and dates.').waitFor()
  await look(page, 'give-role-again')
  await send()
  await hers.getByText('The second time').waitFor()
  const offers = hers.getByRole('main').getByRole('listitem')
  await expect.poll(() => offers.count()).toBe(1)
  expect(await hers.getByText('The first time').count()).toBe(0)

  const his = await opened(bob, '/admin')
  await his.getByRole('heading', { name: 'Home' }).waitFor()
  await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 3 })
  await bob.client.role_grant_offer_create({
    to_account_id: grace.id,
    role: 'editor',
    message: 'From me too',
  })
  await hers.getByText('From me too').waitFor()
  await look(hers, 'inbox-two')
  await offers.filter({ hasText: 'The second time' }).getByRole('button', { name: 'Accept editor' }).click()
  await hers.getByText('You now hold editor.').waitFor()
  await his.getByText('Your offer of editor has ended: another offer of it was accepted.').waitFor()
  await hers.getByText('No offers').waitFor()
  await hers.getByRole('link', { name: 'History' }).click()
  await hers.getByRole('cell', { name: 'ended', exact: true }).waitFor()
  await look(hers, 'inbox-history-two')
})

it('offering to another actor of the account is another offer, and each is shown with its actor', async () => {
  const ada = await admin('ada')
  const grace = await test.account({ username: 'grace' })
  const night = await test.actor(grace.id, 'Night shift')
  await ada.client.role_grant_offer_create({ to_account_id: grace.id, to_actor_id: night, role: 'editor' })
  const page = await opened(ada, `/admin/people/${grace.id}?dialog=give&role=editor`)
  const replaces = page.getByText('You have already offered it.')
  const actor = page.getByRole('combobox', { name: 'For the actor' })
  for (const name of ['whichever accepts', 'grace']) {
    await actor.selectOption('Night shift')
    await replaces.waitFor()
    await actor.selectOption(name)
    await expect.poll(() => replaces.count()).toBe(0)
  }
  await page.getByRole('button', { name: 'Offer editor' }).click()
  await page.getByText('grace was offered editor.').waitFor()
  for (const name of ['Night shift', 'grace'])
    await page
      .getByRole('listitem')
      .filter({ hasText: `editor everywhere, for ${name}` })
      .waitFor()
})

it('offers that one has made have a place of their own, where they can be taken back', async () => {
  const [ada, bob] = [await admin('ada'), await admin('bob')]
  const grace = await test.account({ username: 'grace' })
  await bob.client.role_grant_offer_create({ to_account_id: ada.id, role: 'editor' })
  const page = await opened(ada, '/admin/inbox')
  await page.locator('.tabs').getByRole('link', { name: 'Sent' }).click()
  await page.getByText('No offers sent').waitFor()
  await look(page, 'inbox-sent-empty')
  await ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'editor' })
  await page.reload()
  const sent = page.getByRole('table', { name: 'Sent' })
  await sent.getByText('waiting').waitFor()
  expect(await sent.getByRole('row').count()).toBe(2)
  await sent.getByRole('link', { name: 'grace' }).waitFor()
  expect(await page.title()).toBe('Sent, Inbox · Cellkeep')
  await look(page, 'inbox-sent')
  await sent.getByRole('button', { name: 'Take back' }).click()
  await page.getByText('The offer of editor was taken back.').waitFor()
  await sent.getByText('taken back').waitFor()
  expect(await sent.getByRole('button', { name: 'Take back' }).count()).toBe(0)
  await page.locator('.tabs').getByRole('link', { name: 'History' }).click()
  const all = page.getByRole('table', { name: 'History' })
  await all.getByText('waiting').waitFor()
  expect(await all.getByRole('row').count()).toBe(3)
})

it('offers that one has sent are found behind hundreds of those that one has received', async () => {
  const [ada, bob] = [await admin('ada'), await admin('bob')]
  const grace = await test.account({ username: 'grace' })
  const insert = (from: TestAccount, to: TestAccount, count: number, age: number) =>
    test.service.app.db.run(sql`
      insert into role_grant_offer
        (from_actor_id, from_account_id, to_account_id, role, created_at, expires_at, retracted_at)
      select ${from.actor_id}::uuid, ${from.id}::uuid, ${to.id}::uuid, 'editor',
        now() - (${age}::int + i) * interval '1 second', now() + interval '1 day', now()
      from generate_series(1, ${count}::int) i`)
  await insert(ada, grace, 1, 0)
  await insert(bob, ada, 450, 10)
  await insert(ada, grace, 1, 1000)
  const page = await opened(ada, '/admin/inbox/sent')
  const sent = page.getByRole('table', { name: 'Sent' })
  await sent.getByText('taken back').waitFor()
  const back = page.getByRole('button', { name: 'Look further back' })
  await expect
    .poll(async () => {
      if ((await back.count()) > 0) await back.click()
      return sent.getByRole('row').count()
    })
    .toBe(3)
  await expect.poll(() => back.count()).toBe(0)
})

it('an offer that was made in another window is shown with the name of its recipient as soon as it is answered', async () => {
  const ada = await admin('ada')
  const [grace, hopper] = [
    await test.account({ username: 'grace' }),
    await test.account({ username: 'hopper' }),
  ]
  const offer = async (to: TestAccount): Promise<void> => {
    const { client } = ada
    const { offer } = await client.role_grant_offer_create({ to_account_id: to.id, role: 'editor' })
    await to.client.role_grant_offer_decline({ offer_id: offer.offer_id })
  }
  await offer(grace)
  for (const part of ['Sent', 'History']) {
    const page = await opened(ada, `/admin/inbox/${part.toLowerCase()}`)
    const table = page.getByRole('table', { name: part })
    await table.getByRole('link', { name: 'grace' }).first().waitFor()
    await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 1 })
    const before = await table.getByRole('link', { name: 'hopper' }).count()
    await offer(hopper)
    await expect.poll(() => table.getByRole('link', { name: 'hopper' }).count()).toBe(before + 1)
    await page.close()
    await expect.poll(() => test.service.app.hub.count()).toMatchObject({ sockets: 0 })
  }
})

it('each list of offers asks for the names of recipients once, even if they are known before the offers', async () => {
  const ada = await admin('ada')
  const grace = await test.account({ username: 'grace' })
  const { offer } = await ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'editor' })
  await grace.client.role_grant_offer_decline({ offer_id: offer.offer_id })
  const page = await opened(ada, '/admin/inbox')
  const named = Promise.withResolvers<void>()
  let asked = 0
  await page.route('**/api/rpc', async (route) => {
    const { method } = route.request().postDataJSON() as { method: string }
    if (method === 'role_grant_offer_history') await named.promise
    if (method === 'audit_log_list') asked++
    await route.continue()
  })
  page.on('response', (response) => {
    if (response.request().postData()?.includes('"audit_log_list"')) named.resolve()
  })
  const parts = ['Sent', 'History']
  for (const name of parts) {
    await page.getByRole('link', { name }).click()
    await page.getByRole('table', { name }).getByRole('link', { name: 'grace' }).waitFor()
  }
  await page.getByRole('link', { name: 'Waiting' }).click()
  await page.getByText('No offers').waitFor()
  expect(asked).toBe(parts.length)
})

it('of hundreds of offers or shares those beyond the first page are shown on request', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin', 'teacher'] })
  const grace = await test.account({ username: 'grace' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const rooms = Array.from({ length: 205 }, () => randomUUID())
  for (const scope_id of rooms) {
    await ada.client.cell_grant_create({
      cell_id: cell.id,
      level: 'viewer',
      principal: { role: 'teacher', scope_id },
    })
    const room = { scope_kind: 'room', scope_id }
    await ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'teacher', ...room })
  }
  for (const [account, path, name] of [
    [ada, `/admin/cells/${cell.id}/sharing`, 'Remove'],
    [grace, '/admin/inbox', 'Decline'],
  ] as const) {
    const page = await opened(account, path)
    const rows = page.locator('main').getByRole('button', { name })
    await expect.poll(() => rows.count()).toBe(200)
    await page.getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => rows.count()).toBe(205)
    expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0)
  }
})

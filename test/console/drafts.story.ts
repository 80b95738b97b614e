import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { consoleForFile, person } from './browser.ts'

const test = await consoleForFile({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
type Account = Awaited<ReturnType<typeof test.account>>

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

/** Ends the sessions of `from`, who has this page open; then `to` signs in on it. */
async function signInAgain(page: Page, from: Account, to: Account): Promise<void> {
  await (await test.sessions.create(from.id)).client.account_session_revoke_all({})
  await press(page, 'Sign in again')
  await page.getByLabel('Username or e-mail').fill(to.username)
  await page.getByLabel('Password', { exact: true }).fill(to.password)
  await page.keyboard.press('Enter')
}
const open = async (account: Account, path: string): Promise<Page> => {
  const page = await person(test, (await test.sessions.create(account.id)).cookie)
  await page.goto(path)
  return page
}

it('what is typed for an invite or a token outlives the session, and nobody else sees it', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace', roles: ['admin'] })
  for (const [path, label] of [
    ['/admin/invites?dialog=invite', 'E-mail'],
    ['/admin/me/tokens?dialog=token', 'Name'],
  ] as const) {
    const page = await open(ada, path)
    const field = page.getByRole('dialog').getByLabel(label)
    await field.fill('unsaved@words')
    await page.getByRole('dialog').getByLabel('Ends', { exact: true }).selectOption('7')
    await signInAgain(page, ada, ada)
    await expect.poll(() => field.inputValue()).toBe('unsaved@words')
    expect(await page.getByRole('dialog').getByLabel('Ends', { exact: true }).inputValue()).toBe('7')
    await signInAgain(page, ada, grace)
    await field.waitFor()
    expect(await field.inputValue()).toBe('')
    await signInAgain(page, grace, ada)
    await field.waitFor()
    expect(await field.inputValue()).toBe('')
  }
})

it('a reason outlives the session for the offer that it is about; closing asks before it is dropped', async () => {
  const grace = await test.account({ username: 'grace' })
  for (const username of ['ada', 'hopper']) {
    const keeper = await test.account({ username, roles: ['admin', 'editor'] })
    await keeper.client.role_grant_offer_create({ to_account_id: grace.id, role: 'editor' })
  }
  const page = await open(grace, '/admin/inbox')
  const asked: string[] = []
  let isSure = false
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    return isSure ? dialog.accept() : dialog.dismiss()
  })
  const decline = (at: number) =>
    page
      .locator('main li')
      .nth(at)
      .getByRole('button', { name: /^Decline/ })
      .click()
  const reason = page.getByRole('dialog').getByRole('textbox')
  const cancel = page.getByRole('dialog').getByRole('button', { name: 'Cancel' })
  await decline(0)
  await reason.fill('unsaved words')
  await signInAgain(page, grace, grace)
  await decline(1)
  expect(await reason.inputValue()).toBe('')
  await cancel.click()
  await reason.waitFor({ state: 'detached' })
  await decline(0)
  expect(await reason.inputValue()).toBe('unsaved words')
  expect(asked).toEqual([])
  for (const close of [() => cancel.click(), () => page.keyboard.press('Escape')]) {
    await close()
    expect(await reason.inputValue()).toBe('unsaved words')
  }
  await expect.poll(() => asked).toEqual(Array(2).fill('Leave without saving? Your changes will be lost.'))
  isSure = true
  await cancel.click()
  await reason.waitFor({ state: 'detached' })
  await decline(0)
  expect(await reason.inputValue()).toBe('')
})

it('the parameters of a call outlive the session, but for a code', async () => {
  const ada = await test.account({ username: 'ada' })
  for (const [method, name, kept] of [
    ['cell_get', 'id', 'unsaved words'],
    ['account_totp_confirm', 'code (required)', ''],
  ] as const) {
    const page = await open(ada, `/admin/api?method=${method}`)
    const field = page.getByLabel(name, { exact: true })
    await field.fill('unsaved words')
    await signInAgain(page, ada, ada)
    await field.waitFor()
    expect(await field.inputValue(), method).toBe(kept)
  }
})

it('a new address of somebody is not taken for verified because the present one is', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace', email: 'grace@example.com' })
  await ada.client.admin_account_email_set({
    account_id: grace.id,
    email: 'grace@example.com',
    verified: true,
  })
  const page = await open(ada, `/admin/people/${grace.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change e-mail' }).click()
  const verified = page.getByRole('dialog').getByRole('checkbox')
  expect(await verified.isChecked()).toBe(true)
  await page.getByRole('dialog').getByRole('textbox').fill('unsaved@words')
  // The address opens the dialog again.
  await signInAgain(page, ada, ada)
  expect(await page.getByRole('dialog').getByRole('textbox').inputValue()).toBe('unsaved@words')
  expect(await verified.isChecked()).toBe(false)
})

it('what was sent is no draft: the form is blank again, and closing the tab asks only before', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await open(ada, '/admin/invites?dialog=invite')
  const asked: string[] = []
  page.on('dialog', (dialog) => {
    asked.push(dialog.type())
    void dialog.dismiss()
  })
  const email = page.getByRole('dialog').getByLabel('E-mail')
  await email.fill('grace@example.com')
  await page.close({ runBeforeUnload: true })
  await expect.poll(() => asked).toEqual(['beforeunload'])
  await press(page, 'Create invite')
  await press(page, 'Done')
  await press(page, 'Invite')
  expect(await email.inputValue()).toBe('')
  await email.fill('hopper@example.com')
  await press(page, 'Create invite')
  await page.getByRole('button', { name: 'Done' }).waitFor()
  const closed = page.waitForEvent('close')
  await page.close({ runBeforeUnload: true })
  await closed
  expect(asked).toEqual(['beforeunload'])
})

it('the palette asks before it leads away from what is typed; what Back leaves is kept', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const asked: string[] = []
  let isSure = false
  for (const [path, label] of [
    ['/admin/invites?dialog=invite', 'E-mail'],
    ['/admin/cells?dialog=new', 'Label'],
  ] as const) {
    const page = await open(ada, '/admin')
    page.on('dialog', (dialog) => {
      asked.push(dialog.message())
      return isSure ? dialog.accept() : dialog.dismiss()
    })
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.goto(path)
    const field = page.getByRole('dialog').getByLabel(label)
    const goToRoles = async (): Promise<void> => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Command palette' }).fill('roles')
      await page.keyboard.press('Enter')
    }
    isSure = false
    await field.fill('unsaved@words')
    await goToRoles()
    await expect.poll(() => asked).toEqual(['Leave without saving? Your changes will be lost.'])
    expect(await field.inputValue()).toBe('unsaved@words')
    isSure = true
    await goToRoles()
    await page.getByRole('heading', { name: 'Roles' }).waitFor()
    await page.goBack()
    await field.waitFor()
    expect(await field.inputValue()).toBe('')
    await field.fill('other@words')
    await page.goForward()
    await page.getByRole('heading', { name: 'Roles' }).waitFor()
    await page.goBack()
    await field.waitFor()
    expect(await field.inputValue()).toBe('other@words')
    expect(asked.splice(0)).toHaveLength(2)
  }
})

it('what is typed outlives what takes its form away: a lost role, a deleted person', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const { client } = await test.account({ username: 'hopper', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const page = await open(ada, '/admin/invites?dialog=invite')
  const email = page.getByRole('dialog').getByLabel('E-mail')
  await email.fill('unsaved@words')
  const { actors } = await client.admin_account_get({ account_id: ada.id })
  const grants = actors.flatMap(({ role_grants }) => role_grants)
  const { id: role_grant_id, actor_id } = grants.find(({ role }) => role === 'admin') as (typeof grants)[0]
  await client.role_grant_revoke({ actor_id, role_grant_id })
  await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  await client.role_grant_assign({ to_account_id: ada.id, role: 'admin' })
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await email.waitFor()
  expect(await email.inputValue()).toBe('unsaved@words')

  const other = await open(ada, `/admin/people/${grace.id}?dialog=give&role=editor`)
  const note = other.getByRole('dialog').getByLabel('Note')
  await note.fill('unsaved words')
  await client.account_delete({ account_id: grace.id })
  await other.getByRole('button', { name: 'Undelete' }).waitFor()
  expect(await note.count()).toBe(0)
  await client.account_undelete({ account_id: grace.id })
  await note.waitFor()
  expect(await note.inputValue()).toBe('unsaved words')
})

it('a role assigned while the session was being read anew is noticed', async () => {
  const ada = await test.account({ username: 'ada', roles: ['editor'] })
  const { client } = await test.account({ username: 'hopper', roles: ['admin'] })
  const page = await open(ada, '/admin/invites')
  await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  const read: (() => void)[] = []
  await page.route('**/status*', async (route) => {
    const response = await route.fetch()
    if (read.length < 2) await new Promise<void>((resolve) => read.push(resolve))
    await route.fulfill({ response })
  })
  const other = await page.context().newPage()
  await other.goto('/admin/sign-in')
  await other.evaluate(() => new BroadcastChannel('cellkeep').postMessage('signed_in'))
  await expect.poll(() => read.length).toBe(1)
  await client.role_grant_assign({ to_account_id: ada.id, role: 'admin' })
  await page.evaluate(() => dispatchEvent(new Event('focus')))
  await expect.poll(() => read.length).toBe(2)
  const loaded = page.waitForResponse('**/rpc')
  read[0]?.()
  await (await loaded).finished()
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)))
  read[1]?.()
  await page.getByRole('heading', { name: 'Invites' }).waitFor()
})

it('so does what is typed in a dialog of a menu: a name of a deleted person, of a cell that is out of sight', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const { client } = await test.account({ username: 'hopper', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  const choose = async (page: Page, name: string): Promise<void> => {
    await press(page, 'More actions')
    await page.getByRole('menuitem', { name }).click()
  }
  const page = await open(ada, `/admin/people/${grace.id}`)
  await choose(page, 'Change username')
  const field = page.getByRole('dialog').getByRole('textbox')
  await field.fill('unsaved')
  await client.account_delete({ account_id: grace.id })
  await page.getByRole('button', { name: 'Undelete' }).waitFor()
  await client.account_undelete({ account_id: grace.id })
  await expect.poll(() => field.inputValue()).toBe('unsaved')

  const { cell } = await client.cell_create({ data: { label: 'Plan' } })
  const principal = { actor_id: grace.actor_id }
  const share = { cell_id: cell.id, level: 'editor' as const, principal }
  const { grant } = await client.cell_grant_create(share)
  const hers = await open(grace, `/admin/cells/${cell.id}`)
  await choose(hers, 'Rename')
  const label = hers.getByRole('dialog').getByLabel('Label')
  await label.fill('unsaved')
  await client.cell_grant_revoke({ grant_id: grant.id })
  await press(hers, 'Save')
  await expect.poll(() => hers.getByRole('dialog').count()).toBe(0)
  await client.cell_grant_create(share)
  await press(hers, 'Try again')
  await expect.poll(() => label.inputValue()).toBe('unsaved')
})

it('so does what is typed for a new name of one’s own', async () => {
  const grace = await test.account({ username: 'grace' })
  const page = await open(grace, '/admin/me')
  await press(page, 'Change name')
  const field = page.getByRole('dialog').getByRole('textbox')
  await field.fill('unsaved')
  await signInAgain(page, grace, grace)
  await expect.poll(() => field.inputValue()).toBe('unsaved')
  page.on('dialog', (dialog) => void dialog.accept())
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  expect(new URL(page.url()).search).toBe('')
})

it('Back from a cell that was just made or copied asks for no other', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await open(ada, '/admin/cells')
  await press(page, 'New cell')
  await page.getByLabel('Label').fill('Plan')
  await press(page, 'Create cell')
  await page.getByRole('heading', { name: 'Plan' }).waitFor()
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Copy cell' }).click()
  await page.getByText('Copies 1 cell').waitFor()
  await page.getByLabel('Label').fill('Copy')
  await page.getByRole('dialog').getByRole('button', { name: 'Copy cell' }).click()
  await page.getByRole('heading', { name: 'Copy', level: 1 }).waitFor()
  for (const heading of ['Plan', 'Cells']) {
    await page.goBack()
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
  }
})

it('a dialog in which nothing was typed closes without a question, whatever others change meanwhile', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await open(ada, `/admin/cells/${cell.id}`)
  const asked: string[] = []
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    void dialog.accept()
  })
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByLabel('Label').waitFor()
  await ada.client.cell_update({ cell_id: cell.id, data_patch: { label: 'Handbook' } })
  await page.locator('h1', { hasText: 'Handbook' }).waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  expect(asked).toEqual([])
})

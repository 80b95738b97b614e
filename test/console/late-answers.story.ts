import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { consoleForFile, person } from './browser.ts'
import { holdBack } from './hold-back.ts'

const test = await consoleForFile({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
const request_id = 'b54adc00-67f9-41f0-b2d8-0d0a2c2b9b6a'

const toast = (page: Page, text: string) => page.locator('.toast').getByText(text).waitFor()
const rail = (page: Page, name: string) => page.locator('.rail').getByRole('link', { name }).first()

it('an answer that comes after its dialog was closed opens no page, and says what was done', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells?dialog=new')
  const { letGo } = await holdBack(page, 'cell_create')
  await page.getByLabel('Label').fill('Plan')
  await page.getByRole('button', { name: 'Create cell' }).click()
  await page.keyboard.press('Escape')
  await rail(page, 'Invites').click()
  await page.getByRole('heading', { name: 'Invites' }).waitFor()
  letGo(undefined)
  await toast(page, 'Cell created.')
  expect(new URL(page.url()).pathname).toBe('/admin/invites')
})

it('an invite that was made after its dialog was closed is told of, though nothing is mailed', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/invites?dialog=invite')
  const { letGo } = await holdBack(page, 'invite_create')
  await page.getByLabel('E-mail').fill('grace@example.com')
  await page.getByRole('button', { name: 'Create invite' }).click()
  await page.keyboard.press('Escape')
  await rail(page, 'Cells').click()
  letGo(undefined)
  await toast(page, 'Invite created.')
  expect(await page.getByRole('dialog').count()).toBe(0)
})

it('closes no other dialog, in which somebody types already', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/people/${grace.id}?dialog=give&role=editor`)
  const { letGo } = await holdBack(page, 'role_grant_offer_create')
  await page.getByRole('button', { name: 'Offer editor' }).click()
  await page.keyboard.press('Escape')
  await rail(page, 'Cells').click()
  await page.getByRole('button', { name: 'New cell' }).click()
  await page.getByLabel('Label').fill('Plan')
  letGo(undefined)
  await toast(page, 'grace was offered editor.')
  expect(await page.getByLabel('Label').inputValue()).toBe('Plan')
})

it('a refusal is shown even if its dialog was closed, and an unknown outcome is not guessed', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells?dialog=new')
  const { letGo } = await holdBack(page, 'cell_create')
  await page.getByLabel('Label').fill('Plan')
  await page.getByRole('button', { name: 'Create cell' }).click()
  await page.keyboard.press('Escape')
  letGo({ reason: 'service_unavailable', outcome: 'unknown' })
  await toast(page, 'Check whether it was done before you repeat it.')
})

it('a dialog names the request under which the log says why it failed', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells?dialog=new')
  const { letGo } = await holdBack(page, 'cell_create')
  letGo({ reason: 'internal_error', request_id })
  await page.getByLabel('Label').fill('Plan')
  await page.getByRole('button', { name: 'Create cell' }).click()
  await page.getByRole('dialog').getByRole('alert').getByText(request_id).waitFor()
})

it('a refusal stays with the session that it is about, and is told though its dialog was closed', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  await test.sessions.create(grace.id)
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/people/${grace.id}/sessions`)
  const { letGo } = await holdBack(page, 'admin_session_revoke')
  const dialog = page.getByRole('dialog')
  const end = dialog.getByRole('button', { name: 'End session' })
  await page.getByRole('button', { name: /^End / }).first().click()
  await end.click()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: /^End / }).last().click()
  await end.waitFor()
  expect(await end.getAttribute('aria-busy')).toBeNull()
  letGo({ reason: 'service_unavailable', outcome: 'unknown' })
  await toast(page, 'Check whether it was done before you repeat it.')
  expect(await dialog.getByRole('alert').filter({ visible: true }).count()).toBe(0)

  await page.goto('/admin/me/sessions')
  const { promise: isClosed, resolve: closed } = Promise.withResolvers<void>()
  await page.route('**/api/rpc', async (route) => {
    const { method } = route.request().postDataJSON() as { method: string }
    if (method !== 'account_session_revoke_all') return route.fallback()
    await isClosed
    await route.abort()
  })
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await dialog.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.keyboard.press('Escape')
  await expect.poll(() => dialog.count()).toBe(0)
  closed()
  await toast(page, 'The server did not answer. Check whether it was done before you repeat it.')
})

it('a count that could not be read before a change says so, and can be tried again', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace', roles: ['editor'] })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  const error = { code: -32000, message: 'no', data: { reason: 'internal_error', outcome: 'unknown' } }
  await page.route('**/api/rpc', async (route) => {
    const { id, method } = route.request().postDataJSON() as { id: number; method: string }
    if (!/_preview$|_explain$/.test(method)) return route.continue()
    await route.fulfill({ status: 500, json: { jsonrpc: '2.0', id, error } })
  })
  for (const path of [
    '/admin/me',
    `/admin/people/${grace.id}?dialog=delete`,
    `/admin/people/${grace.id}`,
    `/admin/cells/${cell.id}?dialog=delete`,
    `/admin/cells/${cell.id}?dialog=clone`,
  ]) {
    await page.goto(path)
    if (!path.includes('dialog')) await page.getByRole('button', { name: /^End editor|^Delete my/ }).click()
    const alert = page
      .getByRole('dialog')
      .getByRole('alert')
      .filter({ hasText: 'The connection to the database' })
    await alert.waitFor()
    // Nothing was changed, and nothing is being counted.
    expect(await page.getByRole('dialog').innerText(), path).not.toMatch(/Check whether|Counting/)
  }
  await page.unroute('**/api/rpc')
  await page.getByRole('dialog').getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('dialog').getByText('Copies 1 cell').waitFor()
  expect(await page.getByRole('dialog').getByRole('alert').filter({ visible: true }).count()).toBe(0)
})

it('what is typed while a cell is saved stays, and is saved next', async () => {
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}?edit=1`)
  const editor = page.getByRole('textbox', { name: 'JSON of the cell' })
  const write = async (text: string): Promise<void> => {
    await editor.click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText(text)
  }
  const save = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Review changes' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
  }
  await editor.waitFor()
  await write('{"label":"Plan","n":1}')
  const { letGo } = await holdBack(page, 'cell_update')
  await save()
  await page.getByRole('button', { name: 'Back', exact: true }).click()
  await write('{"label":"Plan","n":2}')
  letGo(undefined)
  await toast(page, 'Saved.')
  await page.getByText('1 change', { exact: true }).waitFor()
  await save()
  await page
    .getByRole('button', { name: 'Edit', exact: true })
    .or(page.getByRole('link', { name: 'Edit' }))
    .waitFor()
  const { cell: now } = await ada.client.cell_get({ id: cell.id })
  expect(now).toMatchObject({ data: { label: 'Plan', n: 2 }, version: 3 })
})

it('what one account has done is not shown to the next, nor are its messages', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/cells?dialog=new')
  await page.getByLabel('Label').fill('Plan')
  await page.getByRole('button', { name: 'Create cell' }).click()
  await toast(page, 'Cell created.')
  const { letGo, isAnswered } = await holdBack(page, 'cell_update')
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByLabel('Label').fill('Other')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Account and theme' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.locator('.toast').count()).toBe(0)
  await page.evaluate(() => {
    const state = window as never as { told: number }
    state.told = 0
    new MutationObserver(() => {
      if (document.querySelector('.toast')) state.told++
    }).observe(document.body, { childList: true, subtree: true })
  })
  letGo(undefined)
  await isAnswered
  // A late message would show up beside the next account.
  const grace = await test.account({ username: 'grace' })
  await page.getByLabel('Username or e-mail').fill('grace')
  await page.getByLabel('Password', { exact: true }).fill(grace.password)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'grace Account and theme' }).waitFor()
  expect(await page.evaluate(() => (window as never as { told: number }).told)).toBe(0)
})

it('signing out everywhere leads to the sign-in, though the socket ends before the answer', async () => {
  const ada = await test.account({ username: 'ada' })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/me/sessions')
  const { letGo } = await holdBack(page, 'account_session_revoke_all')
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.getByRole('heading', { name: 'You were signed out' }).waitFor()
  letGo(undefined)
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
})

it('what another ended meanwhile goes from the list once it is refused, and the refusal stays', async () => {
  const ada = await test.account({ username: 'ada' })
  const grace = await test.account({ username: 'grace' })
  const { cell } = await ada.client.cell_create({ data: { label: 'Plan' } })
  const principal = { actor_id: grace.actor_id }
  const { grant } = await ada.client.cell_grant_create({ cell_id: cell.id, level: 'editor', principal })
  const page = await person(test, ada.cookie)
  await page.goto(`/admin/cells/${cell.id}/sharing`)
  const stop = page.getByRole('button', { name: /^Remove/ })
  await stop.waitFor()
  await ada.client.cell_grant_revoke({ grant_id: grant.id })
  await stop.click()
  await page.getByText('Shared with nobody.').waitFor()
  await toast(page, 'This share has already ended.')
  expect(await page.locator('.toast').count()).toBe(1)
})

it('what was refused for a while counts down until it may be tried again', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const grace = await test.account({ username: 'grace' })
  await ada.client.account_delete({ account_id: grace.id })
  const page = await person(test, ada.cookie)
  const refused = async (method: string): Promise<void> => {
    let isFirst = true
    await page.route('**/api/rpc', (route) => {
      const sent = route.request().postDataJSON() as { id: number; method: string }
      if (sent.method !== method || !isFirst) return route.fallback()
      isFirst = false
      const error = { code: -32000, message: 'no', data: { reason: 'rate_limited', retry_after: 2 } }
      return route.fulfill({ status: 429, json: { jsonrpc: '2.0', id: sent.id, error } })
    })
  }
  const waits = page.getByRole('button', { name: /^Again in \d s$/ })
  await refused('cell_list')
  await page.goto('/admin/cells')
  await waits.waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await refused('account_undelete')
  await page.goto(`/admin/people/${grace.id}`)
  const undelete = page.getByRole('button', { name: 'Undelete' })
  await undelete.click()
  await waits.waitFor()
  await undelete.click()
  await page.locator('.toast').waitFor()
  await expect.poll(() => undelete.count()).toBe(0)
})

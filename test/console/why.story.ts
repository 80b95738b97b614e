import { expect, it } from 'vitest'
import { cellRow, closeRole, endRole } from '../helpers/cell-rows.ts'
import { consoleForFile, look, person } from './browser.ts'

const [here, there] = ['3b241101-e2bb-4255-8caf-4136c566a962', '4b241101-e2bb-4255-8caf-4136c566a962']
const test = await consoleForFile({ scope_kinds: [{ name: 'room' }] })

it('why: each reason and each near miss in words, as the calls of that person answer', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const bob = await test.account({ username: 'bob' })
  const make = async (data: object = {}) => (await bob.client.cell_create({ data: data as never })).cell.id
  const hold = (actor_id: string, role: string, scope_id?: string, expires_at?: string) =>
    test.roleGrant({
      actor_id,
      role,
      granted_by: ada.actor_id,
      ...(scope_id && { scope_kind: 'room', scope_id }),
      ...(expires_at && { expires_at }),
    })
  const [shared, open, system] = [await make(), await make(), await cellRow(test)]
  await bob.client.cell_update({ cell_id: open, visibility: 'public' })
  const grace = await test.account({ username: 'grace' })
  await hold(grace.actor_id, 'editor', here, '2040-01-01T00:00:00Z')
  await hold(grace.actor_id, 'reader')
  await hold(grace.actor_id, 'far', there)
  await hold(grace.actor_id, 'late', here, '2020-01-01T00:00:00Z')
  await hold(grace.actor_id, 'ended', here)
  await endRole(test, grace.actor_id, 'ended')
  await hold(grace.actor_id, 'closed', here)
  await closeRole(test, grace.actor_id, 'closed')
  await hold(grace.actor_id, 'admin')
  await endRole(test, grace.actor_id, 'admin')
  for (const role of ['editor', 'far', 'late', 'ended', 'closed'])
    await test.cellGrant(shared, 'editor', { role, scope_id: here })
  await test.cellGrant(shared, 'viewer', { role: 'reader', scope_id: null })
  await test.cellGrant(shared, 'viewer', { actor_id: grace.actor_id })
  await test.cellGrant(open, 'viewer', { actor_id: grace.actor_id })
  await test.cellGrant(system, 'editor', { actor_id: grace.actor_id })
  const scoped = await test.account({ username: 'scoped' })
  await hold(scoped.actor_id, 'admin', there)
  const zoe = await test.account({ username: 'zoe' })
  const gone = await test.account({ username: 'gone' })
  await gone.client.account_delete()

  const page = await person(test, ada.cookie)
  const section = page.locator('section.section').first()
  const inOneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()
  /** Compares what the page says about a person with what that person's own calls answer. */
  async function why(cell_id: string, of: { actor_id: string; username: string; client: typeof ada.client }) {
    await page.goto(`/admin/cells/${cell_id}/why`)
    await page.getByRole('combobox', { name: 'Whose access' }).fill(of.actor_id)
    await section.getByRole('heading', { name: of.username }).waitFor()
    await section.locator('li').first().waitFor()
    const verdict = {
      sees: (await of.client.try.cell_get({ id: cell_id })).ok,
      edits: (await of.client.try.cell_update({ cell_id, data_patch: {} })).ok,
      manages: (await of.client.try.cell_grant_list({ cell_id })).ok,
    }
    const badges = await section.locator('header .badge').allInnerTexts()
    const may = Object.entries(verdict).flatMap(([tier, ok]) => (ok ? [tier] : []))
    expect(badges).toEqual(may.length > 0 ? may : ['may not see it'])
    return (await section.getByRole('listitem').allInnerTexts()).map(inOneLine).toSorted()
  }

  expect(await why(shared, bob)).toEqual(['manages They own it.'])
  expect(await why(shared, ada)).toEqual([
    'manages They are an admin. Held until it is ended, given by the server.',
  ])
  const here4 = here.slice(0, 4)
  expect(await why(shared, grace)).toEqual(
    [
      `edits It is shared with everybody with editor in ${here4}, which they hold. Held until 2040-01-01 01:00, given by ada.`,
      'sees It is shared with them.',
      'sees It is shared with everybody with reader, which they hold. Held until it is ended, given by ada.',
      `nearly They hold the role, but not for the place that it is shared for: far in ${here4}.`,
      `nearly They held the role late in ${here4}; it has expired.`,
      `nearly They held the role ended in ${here4}; it was ended.`,
      `nearly They held the role closed in ${here4}; it has expired.`,
      'nearly They held the role admin; it was ended.',
    ].toSorted(),
  )
  await look(page, 'cell-why-near')
  expect(await why(open, grace)).toEqual([
    'nearly It is shared with them, but only to view.',
    'nearly They held the role admin; it was ended.',
    'sees It is public.',
    'sees It is shared with them.',
  ])
  expect(await why(system, grace)).toEqual([
    'nearly It is shared with them to edit, but nobody owns it: only admins can edit it.',
    'nearly They held the role admin; it was ended.',
    'sees It is shared with them.',
  ])
  expect(await why(shared, scoped)).toEqual([
    'nearly They hold admin in one place; here it counts only if held everywhere.',
  ])
  expect(await why(shared, { ...gone, username: 'removed actor' })).toEqual(['nearly The actor was removed.'])
  expect(await why(shared, zoe)).toEqual(['No rule lets them in.'])
  await page.getByText('Its owner, 1 admin, 1 person, 1 holder of editor in 3b24').waitFor()

  // A person who may not share the cell sees only their own access, and no near misses.
  const hers = await person(test, grace.cookie)
  await hers.goto(`/admin/cells/${open}/why`)
  await hers.getByText('It is shared with them.').waitFor()
  expect(await hers.getByRole('combobox').count()).toBe(0)
  expect(await hers.getByText('nearly').count()).toBe(0)
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import { scenario, type TestAccount, type TestService, testService } from 'cellkeep/testing'
import config, { type Wiki } from './cellkeep.config.ts'

const workspace_id = randomUUID()
let wiki: TestService<Wiki>
before(async () => {
  wiki = await testService<Wiki>(config)
})
afterEach(() => wiki.reset())
after(() => wiki.close())

async function writer(scope_id = workspace_id): Promise<TestAccount<Wiki> & { role_grant_id: string }> {
  const account = await wiki.account()
  const grant = { actor_id: account.actor_id, role: 'writer', scope_kind: 'workspace', scope_id }
  return { ...account, role_grant_id: (await wiki.roleGrant(grant)).role_grant_id }
}

const page = { workspace_id, title: 'Welcome', body: 'Hello.' }

test('a page is made by the writers of its workspace, and by nobody else', async () => {
  const ada = await writer()
  await scenario(wiki, () => ada.client.page_create(page), {
    audit: [{ event_type: 'cell_create', actor_id: ada.actor_id }, { event_type: 'cell_grant_create' }],
  })
  for (const other of [await writer(randomUUID()), await wiki.account()])
    await scenario(wiki, () => other.client.page_create(page), { reason: 'insufficient_permissions' })
  const forged = { kind: `page/${workspace_id}`, data: { title: 'x', body: '' } }
  await scenario(wiki, () => ada.client.cell_create(forged), { reason: 'cell_create_forbidden' })
})

test('page_count and page_list show exactly what the caller may see', async () => {
  const [ada, grace, eve] = [await writer(), await writer(), await writer(randomUUID())]
  const { page_id } = await ada.client.page_create(page)
  await ada.client.page_create({ ...page, title: 'Plans' })
  const seen = async (client: TestAccount<Wiki>['client']): Promise<number> => {
    const { pages } = await client.page_count({ workspace_id })
    assert.equal((await client.page_list({ workspace_id })).pages.length, pages)
    return pages
  }
  assert.deepEqual([await seen(grace.client), await seen(eve.client), await seen(wiki.client())], [2, 0, 0])
  await ada.client.cell_update({ cell_id: page_id, visibility: 'public' })
  assert.deepEqual([await seen(grace.client), await seen(eve.client), await seen(wiki.client())], [2, 1, 1])
  const { actor_id, role_grant_id } = grace
  await wiki.service.operations.revokeRole({ actor_id, role_grant_id }, { via: 'test' })
  assert.equal(await seen(grace.client), 1)
})

test('a page keeps its shape, whoever edits it', async () => {
  const ada = await writer()
  const { page_id } = await ada.client.page_create(page)
  const broken = await ada.client.try.cell_update({ cell_id: page_id, data_patch: { title: '' } })
  assert.equal(broken.ok || broken.error.reason, 'cell_data_invalid')
})

test('a locked page is edited by its holder alone, and the author hears of it', async () => {
  const [ada, grace] = [await writer(), await writer()]
  const { page_id } = await ada.client.page_create(page)
  const edit = { page_id, body: 'Hello, all.', expected_version: 2 }
  await scenario(wiki, () => grace.client.page_lock({ page_id, locked: true }), {
    audit: [{ event_type: 'cell_update' }, { event_type: 'page_lock', actor_id: grace.actor_id }],
  })
  await scenario(wiki, () => ada.client.page_edit(edit), { reason: 'page_locked' })
  await scenario(wiki, () => grace.client.page_edit(edit), {
    audit: [{ event_type: 'cell_update', actor_id: grace.actor_id }],
    notify: [{ method: 'page_changed', params: { page_id, version: 3 } }],
  })
  await scenario(wiki, () => grace.client.page_edit(edit), { reason: 'cell_version_conflict' })
  await grace.client.page_lock({ page_id, locked: false })
  assert.deepEqual(await ada.client.page_edit({ ...edit, body: 'Ours.', expected_version: 4 }), {
    version: 5,
  })
  const eve = await wiki.account()
  await scenario(wiki, () => eve.client.page_edit(edit), { reason: 'cell_not_found' })
})

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, dataOf, reasonOf, rpc, send } from '../../test/helpers/http.ts'
import type { Actions } from '../actions.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { mutation, query } from './declare.ts'

const input = z.strictObject({ workspace_id: z.uuid(), pages: z.int().default(1) })
const output = z.object({ pages: z.int() })
const required = { account: 'required', actor: 'required' } as const

const actions = {
  page_review: query({
    doc: 'For the reviewers of a workspace.',
    auth: { ...required, roles: ['admin', { role: 'reviewer', in: ({ workspace_id }) => workspace_id }] },
    input,
    output,
    handler: async ({ pages }) => ({ pages }),
  }),
  page_shelve: mutation({
    doc: 'For the reviewers of a shelf, of a role that applies to all kinds.',
    auth: { ...required, roles: [{ role: 'keeper_of_pages', scope_kind: 'shelf', in: (it) => it.shelf_id }] },
    event: 'cell_update',
    input: z.strictObject({ shelf_id: z.uuid().optional() }),
    output: z.null(),
    handler: async () => null,
  }),
  page_broken: query({
    doc: 'Names no scope, though its declaration says so.',
    auth: { ...required, roles: [{ role: 'reviewer', in: () => 7 as never }] },
    output: z.null(),
    handler: async () => null,
  }),
}
type Wiki = Actions & typeof actions

let test: TestService<Wiki>
let stranger: TestAccount<Wiki>
beforeAll(async () => {
  test = await testService<Wiki>({
    actions,
    roles: [
      { name: 'reviewer', grant_paths: ['admin'], applicable_scope_kinds: ['workspace'] },
      { name: 'keeper_of_pages', grant_paths: ['admin'] },
    ],
    scope_kinds: [{ name: 'workspace' }, { name: 'shelf' }],
  })
  stranger = await test.account()
})
afterAll(() => test.close())

const workspace_id = randomUUID()
const holder = async (role: string, scope: { scope_kind?: string; scope_id?: string } = {}) => {
  const account = await test.account()
  await test.roleGrant({ actor_id: account.actor_id, role, ...scope })
  return account
}
const workspace = { scope_kind: 'workspace', scope_id: workspace_id }
const reasonFor = async (work: Promise<{ ok: boolean; error?: { reason: string } }>) => {
  const outcome = await work
  return outcome.ok ? 'ok' : outcome.error?.reason
}
const review = (account: TestAccount<Wiki>, id: string = workspace_id) =>
  reasonFor(account.client.try.page_review({ workspace_id: id }))

describe('a role that is required in the scope of the input', () => {
  it('is held there, or globally, and nowhere else', async () => {
    const reviewer = await holder('reviewer', workspace)
    expect(await reviewer.client.page_review({ workspace_id, pages: 3 })).toEqual({ pages: 3 })
    expect(await review(reviewer, workspace_id.toUpperCase())).toBe('ok')
    expect(await review(reviewer, randomUUID())).toBe('insufficient_permissions')
    expect(await review(await holder('reviewer'))).toBe('ok')
    expect(await review(await test.account({ roles: ['admin'] }))).toBe('ok')
    expect(await review(stranger)).toBe('insufficient_permissions')
  })

  it('ends with the grant', async () => {
    const reviewer = await holder('reviewer', workspace)
    expect(await review(reviewer)).toBe('ok')
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: reviewer.actor_id, role: 'reviewer' },
      { via: 'test' },
    )
    expect(await review(reviewer)).toBe('insufficient_permissions')
  })

  it('is of one kind of scope: the same id under another kind does not count', async () => {
    const shelf_id = randomUUID()
    const shelve = (account: TestAccount<Wiki>, id?: string) =>
      reasonFor(account.client.try.page_shelve(id === undefined ? {} : { shelf_id: id }))
    const ofShelf = await holder('keeper_of_pages', { scope_kind: 'shelf', scope_id: shelf_id })
    const ofWorkspace = await holder('keeper_of_pages', { scope_kind: 'workspace', scope_id: shelf_id })
    expect(await shelve(ofShelf, shelf_id)).toBe('ok')
    expect(await shelve(ofWorkspace, shelf_id)).toBe('insufficient_permissions')
    // If the input names no scope, only a global grant counts.
    expect(await shelve(ofShelf)).toBe('insufficient_permissions')
    expect(await shelve(await holder('keeper_of_pages'))).toBe('ok')
  })

  it('is refused alike to callers who hold it nowhere, before the input is judged', async () => {
    const ask = (account: TestAccount<Wiki>, params: unknown) =>
      rpc(test.url, call('page_review', params), { cookie: account.cookie })
    const elsewhere = await holder('reviewer', { scope_kind: 'workspace', scope_id: randomUUID() })
    const ofAnotherRole = await holder('keeper_of_pages')
    const refused = {
      reason: 'insufficient_permissions',
      required_roles: ['admin', 'reviewer'],
    }
    for (const params of [{}, { workspace_id: 1 }, { workspace_id, x: 1 }, { workspace_id }]) {
      for (const account of [stranger, ofAnotherRole])
        expect(dataOf(await ask(account, params))).toEqual(refused)
      const isValid = JSON.stringify(params) === JSON.stringify({ workspace_id })
      expect(reasonOf(await ask(elsewhere, params))).toBe(isValid ? refused.reason : 'invalid_params')
    }
    expect(dataOf(await ask(elsewhere, { workspace_id }))).toEqual(refused)
    expect(reasonOf(await rpc(test.url, call('page_review', {})))).toBe('authentication_required')
  })

  it('is required by GET and in a batch too', async () => {
    const reviewer = await holder('reviewer', workspace)
    const get = (account: TestAccount<Wiki>) =>
      send(test.url, {
        path: `/api/rpc?method=page_review&id=1&params=${encodeURIComponent(JSON.stringify({ workspace_id }))}`,
        headers: { cookie: account.cookie },
      })
    expect((await get(reviewer)).status).toBe(200)
    expect((await get(stranger)).status).toBe(403)
    const entries = [
      call('page_review', { workspace_id }),
      call('page_review', { workspace_id: randomUUID() }),
    ]
    expect((await rpc(test.url, entries, { cookie: reviewer.cookie })).json).toMatchObject([
      { result: { pages: 1 } },
      { error: { data: { reason: 'insufficient_permissions' } } },
    ])
  })

  it('lets nobody in when its function returns no id', async () => {
    const reviewer = await holder('reviewer', workspace)
    expect(await reasonFor(reviewer.client.try.page_broken())).toBe('internal_error')
  })
})

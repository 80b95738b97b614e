import { describe, expect, test as it } from 'vitest'
import { forgedCookie } from '../../test/helpers/callers.ts'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { TestAccount } from '../testing/index.ts'

/** Statements of the running call, without BEGIN and COMMIT. */
const sent: string[] = []

const missing = '11111111-1111-4111-8111-111111111111'
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
const hidden = await cellRow(test, { created_by: ada.actor_id, path: 'hidden' })

/** The outcome of a call and its statements: `c` reads the caller, `s` is one of the method, `A` writes audit rows. */
async function statements(call: () => Promise<unknown>): Promise<string> {
  sent.length = 0
  const reason = await reasonOf(call())
  const kinds = sent.map((text) =>
    text.includes('auth_session') ? 'c' : text.includes('audit_write') ? 'A' : 's',
  )
  return `${reason} ${kinds.join('')}`
}

describe('a read is one statement besides the one for the caller, whatever the outcome', () => {
  it('cell_get', async () => {
    const { client } = test
    expect(await statements(() => ada.client.cell_get({ id: hidden }))).toBe('ok cs')
    expect(await statements(() => ada.client.cell_get({ path: 'hidden' }))).toBe('ok cs')
    expect(await statements(() => bob.client.cell_get({ id: hidden }))).toBe('cell_not_found cs')
    expect(await statements(() => client().cell_get({ id: hidden }))).toBe('cell_not_found s')
    // First by the owner; then refused before the session is looked up.
    for (const cookie of [forgedCookie(ada), 'svc_session=forged'])
      expect(await statements(() => client(cookie).cell_get({ id: hidden }))).toBe('cell_not_found s')
    expect(await statements(() => ada.client.cell_get({}))).toBe('cell_get_requires_id_or_path c')
  })

  it('cell_list', async () => {
    expect(await statements(() => ada.client.cell_list())).toBe('ok cs')
    expect(await statements(() => ada.client.cell_list({ shared_with: 'me', order_by: 'updated_at' }))).toBe(
      'ok cs',
    )
    expect(await statements(() => test.client().cell_list())).toBe('ok s')
    expect(await statements(() => ada.client.cell_list({ ids: [] }))).toBe('ok c')
    expect(await statements(() => ada.client.cell_list({ cursor: 'bad' }))).toBe('invalid_params c')
  })

  it('the same text for a hidden, a deleted and a missing cell', async () => {
    const deleted = await cellRow(test, { deleted_at: '2026-01-01T00:00:00Z' })
    const texts = async (call: () => Promise<unknown>) => {
      await statements(call)
      return [...sent]
    }
    for (const client of [bob.client, test.client()]) {
      const wanted = await texts(() => client.cell_get({ id: missing }))
      expect(await texts(() => client.cell_get({ id: hidden }))).toEqual(wanted)
      expect(await texts(() => client.cell_get({ id: deleted }))).toEqual(wanted)
      expect(await texts(() => client.cell_get({ path: 'hidden' }))).toEqual(
        await texts(() => client.cell_get({ path: 'missing' })),
      )
    }
    for (const write of ['cell_update', 'cell_delete'] as const) {
      const wanted = await texts(() => bob.client[write]({ cell_id: missing }))
      for (const cell_id of [hidden, deleted])
        expect(await texts(() => bob.client[write]({ cell_id }))).toEqual(wanted)
    }
  })
})

describe('a write', () => {
  it('cell_create is one statement and the audit rows', async () => {
    expect(await statements(() => ada.client.cell_create({ data: {} }))).toBe('ok csA')
    expect(await statements(() => root.client.cell_create({ data: {}, path: 'made' }))).toBe('ok csA')
    expect(await statements(() => root.client.cell_create({ data: {}, path: 'made' }))).toBe(
      'cell_path_taken cs',
    )
    expect(await statements(() => ada.client.cell_create({ data: {}, path: 'x' }))).toBe(
      'cell_path_admin_only c',
    )
    expect(await statements(() => ada.client.cell_create({ data: { kind: 1 } }))).toBe('cell_kind_in_data c')
  })

  it('cell_update is lock, write and audit rows; the lock alone where it is refused or changes nothing', async () => {
    const { cell } = await ada.client.cell_create({ data: { a: 1 } })
    const by = (account: TestAccount, changes: object, cell_id = cell.id) =>
      statements(() => account.client.cell_update({ cell_id, ...changes }))
    expect(await by(ada, { data: { a: 2 } })).toBe('ok cssA')
    expect(await by(root, { data_patch: { a: 3 }, visibility: 'public', path: 'p' })).toBe('ok cssA')
    expect(await by(ada, { data: { a: 3 }, visibility: 'public' })).toBe('ok cs')
    expect(await by(ada, { expected_version: 1 })).toBe('cell_version_conflict cs')
    expect(await by(ada, { path: null })).toBe('cell_path_admin_only cs')
    expect(await by(ada, { path: 'x' })).toBe('cell_path_admin_only c')
    for (const cell_id of [cell.id, hidden, missing])
      expect(await by(bob, { data: {} }, cell_id)).toBe('cell_not_found cs')
  })

  it('cell_delete is lock, write and audit rows', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    const by = (account: TestAccount, cell_id = cell.id) =>
      statements(() => account.client.cell_delete({ cell_id }))
    expect(await by(bob)).toBe('cell_not_found cs')
    expect(await by(ada)).toBe('ok cssA')
    expect(await by(ada)).toBe('cell_not_found cs')
    expect(await by(ada, missing)).toBe('cell_not_found cs')
  })
})

import { expect, test as it } from 'vitest'
import { forgedCookie } from '../../test/helpers/callers.ts'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

/** How many statements each method sends, by outcome. `hidden.test.ts` compares their texts. */

/** Statements of the running call, without BEGIN and COMMIT. */
const sent: string[] = []
const test = await serviceForFile({
  onStatement: (text) => sent.push(text),
  roles: [{ name: 'team', grant_paths: [] }],
})
const [{ client: ada, ...owner }, { client: bob, ...other }, { client: root }] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
const missing = '11111111-1111-4111-8111-111111111111'
const made = (row: Parameters<typeof cellRow>[1] = {}) =>
  cellRow(test, { created_by: owner.actor_id, ...row })
const own = await made()
const open = await made({ created_by: null, visibility: 'public', path: 'open' })
const parent = await made()
for (let at = 0; at < 9; at++) await itemRow(test, parent, `a${at}`, open)
const foreign = [
  await made({ created_by: other.actor_id }),
  await made({ deleted_at: '2026-01-01T00:00:00Z' }),
  missing,
]
for (const id of [own, ...foreign.slice(0, 2)]) {
  await fieldRow(test, id, 'a', open)
  await itemRow(test, id, 'a', open)
}
await itemRow(test, own, 'z', open)
await itemRow(test, own, 'hidden', foreign[0] as string)

const kindOf = (text: string): string => {
  if (text.includes('auth_session')) return 'c'
  if (text.includes('audit_write')) return 'A'
  return /audit_waiting|audit_number/.test(text) ? 'n' : 's'
}
type Step = [wanted: string, call: () => Promise<unknown>]
const all = (ids: readonly string[], wanted: string, call: (id: string) => Promise<unknown>): Step[] =>
  ids.map((id) => [wanted, () => call(id)])

/**
 * The outcomes of calls and their statements: `c` reads the caller, `s` is one of the method, `n` looks for audit
 * rows to number, `A` writes audit rows.
 */
it.each<[string, () => Step[] | Promise<Step[]>]>([
  [
    'cell_get is one, and one for edges if there are many; a forged session is not looked up',
    () => [
      ['ok cs', () => ada.cell_get({ id: own })],
      ['ok css', () => ada.cell_get({ id: parent })],
      ['ok cs', () => ada.cell_get({ path: 'open' })],
      ...all(foreign, 'cell_not_found cs', (id) => ada.cell_get({ id })),
      ['cell_not_found s', () => test.client().cell_get({ id: own })],
      ['cell_not_found s', () => test.client(forgedCookie(owner)).cell_get({ id: own })],
      ['cell_not_found s', () => test.client('svc_session=forged').cell_get({ id: own })],
      ['cell_get_requires_id_or_path c', () => ada.cell_get({})],
    ],
  ],
  [
    'cell_list is one, or none where the input decides',
    () => [
      ['ok cs', () => ada.cell_list()],
      ['ok cs', () => ada.cell_list({ shared_with: 'me', order_by: 'updated_at' })],
      ['ok s', () => test.client().cell_list()],
      ['ok c', () => ada.cell_list({ ids: [] })],
      ['invalid_params c', () => ada.cell_list({ cursor: 'bad' })],
    ],
  ],
  [
    'the lists of edges are one, whatever the outcome',
    () => [
      ...[...foreign, own, open].flatMap((id): Step[] => {
        const wanted = foreign.includes(id) ? 'cell_not_found cs' : 'ok cs'
        return [
          [wanted, () => ada.cell_field_list({ source_id: id })],
          [wanted, () => ada.cell_field_list({ target_id: id, limit: 1 })],
          [wanted, () => ada.cell_item_list({ parent_id: id })],
          [wanted, () => ada.cell_item_list({ child_id: id, limit: 1 })],
        ]
      }),
      ['invalid_params c', () => ada.cell_field_list({ source_id: own, cursor: 'bad' })],
      ['cell_item_list_requires_parent_or_child c', () => ada.cell_item_list({})],
    ],
  ],
  [
    'cell_grant_list is one, whatever the outcome',
    () => [
      ['ok cs', () => ada.cell_grant_list({ cell_id: own })],
      ...all([own, missing], 'cell_not_found cs', (cell_id) => bob.cell_grant_list({ cell_id })),
    ],
  ],
  [
    'cell_audit_list is two, and the numbering where rows wait for it',
    async () => {
      const { id: cell_id } = (await ada.cell_create({ data: {} })).cell
      return [
        ['ok cnn+s', () => ada.cell_audit_list({ cell_id })],
        ['ok cns', () => ada.cell_audit_list({ cell_id })],
        ...all([cell_id, missing], 'cell_not_found cns', (id) => bob.cell_audit_list({ cell_id: id })),
      ]
    },
  ],
  [
    'cell_create is one with its audit rows',
    () => [
      ['ok cA', () => ada.cell_create({ data: {} })],
      ['ok cA', () => root.cell_create({ data: {}, path: 'made' })],
      ['cell_path_taken cA', () => root.cell_create({ data: {}, path: 'made' })],
      ['cell_path_admin_only c', () => ada.cell_create({ data: {}, path: 'x' })],
      ['cell_kind_in_data c', () => ada.cell_create({ data: { kind: 1 } })],
    ],
  ],
  [
    'cell_update is a read, and a write with its audit rows; where it is not found, the lock besides',
    async () => {
      const cell_id = await made({ data: { a: 1 } })
      const all_data = { data_patch: { a: 3 }, visibility: 'public', path: 'p' } as const
      return [
        ['ok csA', () => ada.cell_update({ cell_id, data: { a: 2 } })],
        // Also takes the lock, and changes the copies of the path.
        ['ok cssssA', () => root.cell_update({ cell_id, ...all_data })],
        ['ok csA', () => root.cell_update({ cell_id, data_patch: { a: 4 }, visibility: 'private' })],
        ['ok csA', () => ada.cell_update({ cell_id, data_patch: { a: 3 }, visibility: 'public' })],
        ['ok cs', () => ada.cell_update({ cell_id, data: { a: 3 }, visibility: 'public' })],
        ['cell_version_conflict cs', () => ada.cell_update({ cell_id, expected_version: 1 })],
        ['cell_path_admin_only cs', () => ada.cell_update({ cell_id, path: null })],
        ['cell_path_admin_only c', () => ada.cell_update({ cell_id, path: 'x' })],
        ...all([cell_id, own, missing], 'cell_not_found css', (id) =>
          bob.cell_update({ cell_id: id, data: {} }),
        ),
      ]
    },
  ],
  [
    'cell_delete is one with its audit rows; where that writes nothing, the lock besides, which decides',
    async () => {
      const cell_id = await made()
      return [
        ['cell_not_found cAs', () => bob.cell_delete({ cell_id })],
        ['ok cA', () => ada.cell_delete({ cell_id })],
        ...all([cell_id, missing], 'cell_not_found cAs', (id) => ada.cell_delete({ cell_id: id })),
      ]
    },
  ],
  [
    'cell_grant_create is one with its audit rows; where that writes nothing, the lock besides, which decides',
    () => {
      const give = (principal: object, level: 'viewer' | 'editor' = 'viewer') =>
        ada.cell_grant_create({ cell_id: own, level, principal: principal as { role: string } })
      return [
        ['ok cA', () => give({ actor_id: other.actor_id })],
        ['ok cA', () => give({ actor_id: other.actor_id }, 'editor')],
        ['ok cAss', () => give({ actor_id: other.actor_id }, 'editor')],
        ['ok cA', () => give({ role: 'team' })],
        ['cell_grant_unknown_role cs', () => give({ role: 'none' })],
        ['cell_grant_principal_is_owner cAss', () => give({ actor_id: owner.actor_id })],
        ['cell_grant_unknown_actor cAss', () => give({ actor_id: owner.id })],
        ...all([own, missing], 'cell_not_found cs', (cell_id) =>
          bob.cell_grant_create({ cell_id, level: 'viewer', principal: { role: 'none' } }),
        ),
        ...all([own, missing], 'cell_not_found cAs', (cell_id) =>
          bob.cell_grant_create({ cell_id, level: 'viewer', principal: { role: 'team' } }),
        ),
      ]
    },
  ],
  [
    'cell_grant_revoke is lock, removal, what is left of the access, and audit rows; a miss is one',
    async () => {
      const { id } = await test.cellGrant(own, 'viewer', { role: 'other', scope_id: null })
      const cell_id = await made()
      const { id: leaving } = await test.cellGrant(cell_id, 'viewer', { actor_id: other.actor_id })
      return [
        ...all([id, missing], 'cell_grant_not_found cs', (grant_id) => bob.cell_grant_revoke({ grant_id })),
        ['ok csssA', () => ada.cell_grant_revoke({ grant_id: id })],
        ['ok csssA', () => bob.cell_grant_revoke({ grant_id: leaving })],
      ]
    },
  ],
  [
    'cell_field_set is one with its audit rows; where that writes nothing, the lock besides, which decides',
    () => {
      const set = (source_id: string, name: string, target_id: string) =>
        ada.cell_field_set({ source_id, name, target_id })
      return [
        ['ok cA', () => set(own, 'b', open)],
        ['ok cA', () => set(own, 'b', own)],
        ['ok cAs', () => set(own, 'b', own)],
        ...all(foreign, 'cell_not_found cAs', (id) => set(own, 'a', id)),
        ...all([...foreign, open], 'cell_not_found cAs', (id) => set(id, 'a', open)),
      ]
    },
  ],
  [
    'cell_item_insert likewise',
    () => {
      const insert = (parent_id: string, position: string, child_id: string) =>
        ada.cell_item_insert({ parent_id, position, child_id })
      return [
        ['ok cA', () => insert(own, 'n', open)],
        ['cell_item_position_taken cAss', () => insert(own, 'n', own)],
        ...all(foreign, 'cell_not_found cAs', (id) => insert(own, 'c', id)),
        ...all([...foreign, open], 'cell_not_found cAs', (id) => insert(id, 'c', open)),
      ]
    },
  ],
  [
    'cell_item_move likewise',
    () => {
      const move = (parent_id: string, position: string, new_position: string) =>
        ada.cell_item_move({ parent_id, position, new_position })
      return [
        ['ok cA', () => move(own, 'a', 'b')],
        ['ok cAs', () => move(own, 'b', 'b')],
        ['cell_item_position_taken cAss', () => move(own, 'b', 'z')],
        ...all(['empty', 'hidden'], 'cell_not_found cAs', (position) => move(own, position, 'c')),
        ...all([...foreign, open], 'cell_not_found cAs', (id) => move(id, 'a', 'c')),
      ]
    },
  ],
  [
    'cell_field_delete and cell_item_delete likewise',
    () => {
      const unset = (source_id: string) => ada.cell_field_delete({ source_id, name: 'a' })
      const remove = (parent_id: string) => ada.cell_item_delete({ parent_id, position: 'z' })
      return [unset, remove].flatMap((one): Step[] => [
        ['ok cA', () => one(own)],
        ['ok cAs', () => one(own)],
        ...all([...foreign, open], 'cell_not_found cAs', one),
      ])
    },
  ],
])('%s', async (_what, steps) => {
  for (const [wanted, call] of await steps()) {
    sent.length = 0
    const reason = await reasonOf(call())
    expect(
      `${reason} ${sent
        .map(kindOf)
        .join('')
        .replace(/^cn{2,}s/, 'cnn+s')}`,
    ).toBe(wanted)
  }
})

import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, describe, expect, test as it } from 'vitest'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf, tally, untilServed } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { waitingCalls } from '../../test/helpers/waiting-calls.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const waiting = waitingCalls()
const test = await serviceForFile({ hooks: waiting.hooks })
const [ada, editor, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

type Changes = Omit<Parameters<TestAccount['client']['cell_update']>[0], 'cell_id'>
const update = (account: TestAccount, cell_id: string, changes: Changes) =>
  account.client.cell_update({ cell_id, ...changes })
const stored = async (id: string) => (await root.client.cell_get({ id })).cell

/** An update of a cell with this much data locks it from the start; others write at once, unless they are held. */
const large = { text: 'x'.repeat(8192) }

async function shared(data: object = {}): Promise<string> {
  const cell_id = await cellRow(test, { data, created_by: ada.actor_id })
  await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  return cell_id
}

/** Begins an update that stays in its hook until `open` is called; a large cell is locked meanwhile. */
function held(account: TestAccount, cell_id: string, changes: Changes) {
  const data_patch = { wait: true, ...changes.data_patch }
  return waiting.held(() => reasonOf(update(account, cell_id, { ...changes, data_patch })))
}

/** The rival begins a revoke or downgrade as its method does: under the lock of the cell. */
async function beginRevoke(cell_id: string, how: string) {
  await other.begin('select from cell where id = $1 for no key update', [cell_id])
  await other.query(how, [cell_id, editor.actor_id])
}
const revoke = 'delete from cell_grant where cell_id = $1 and actor_id = $2'

it('an update that goes alone waits for whoever holds its path as long as that takes', async () => {
  const [mine, theirs] = [await cellRow(test), await cellRow(test)]
  await other.begin(`update cell set path = 'held' where id = $1`, [theirs])
  const answer = reasonOf(update(root, mine, { path: 'held' }))
  await other.blocks(1)
  // Several times as long as the updates that share a statement wait.
  expect(await Promise.race([answer, delay(400, 'waits')])).toBe('waits')
  await other.query('rollback')
  expect(await answer).toBe('ok')
})

describe('an update under the lock against the end of the right to it', () => {
  type Ending = (cell_id: string, grant_id: string) => Promise<unknown>
  const principal = { actor_id: editor.actor_id }
  it.each<[string, Ending]>([
    ['revoke', (_cell_id, grant_id) => ada.client.cell_grant_revoke({ grant_id })],
    ['downgrade', (cell_id) => ada.client.cell_grant_create({ cell_id, level: 'viewer', principal })],
    ['deletion', (cell_id) => ada.client.cell_delete({ cell_id })],
  ])('queued behind a %s it changes nothing', async (_what, end) => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id, data: { ...large, wait: true } })
    const { id } = await test.cellGrant(cell_id, 'editor', principal)
    // It changes nothing: those that wait for an updated row race each other, those for an unchanged one get it in
    // turn.
    const first = await held(ada, cell_id, {})
    const ended = reasonOf(end(cell_id, id))
    await other.blocks(1)
    const late = reasonOf(update(editor, cell_id, { data_patch: { late: true } }))
    await other.blocks(2)
    first.open()
    expect(await Promise.all([first.answer, ended, late])).toEqual(['ok', 'ok', 'cell_not_found'])
    const row = await test.service.app.db.first(sql`select version, data from cell where id = ${cell_id}`)
    expect(row).toEqual({ version: 1, data: { ...large, wait: true } })
  })

  it('before a revoke, it is committed by the time the revoke returns', async () => {
    const cell_id = await shared(large)
    const first = await held(editor, cell_id, {})
    const revoked = beginRevoke(cell_id, revoke).then(other.commit)
    await other.blocks(1)
    first.open()
    expect(await first.answer).toBe('ok')
    await revoked
    expect(await stored(cell_id)).toMatchObject({ version: 2, data: { ...large, wait: true } })
    expect(await reasonOf(update(editor, cell_id, {}))).toBe('cell_not_found')
  })

  it.each<[string, Changes]>([
    ['nothing to change', {}],
    ['a version that differs', { expected_version: 1 }],
    ['another visibility', { visibility: 'public' }],
    ['a patch to be merged', { data_patch: { late: 1 } }],
  ])(
    'behind a revoke and a later change of the owner it learns nothing of that: %s',
    async (_what, changes) => {
      const cell_id = await shared(large)
      await beginRevoke(cell_id, revoke)
      const owners = update(ada, cell_id, { data_patch: { secret: 1 } })
      await other.blocks(1)
      const late = reasonOf(update(editor, cell_id, changes))
      await other.blocks(2)
      await other.commit()
      expect((await owners).cell.version).toBe(2)
      expect(await late).toBe('cell_not_found')
      expect(await stored(cell_id)).toMatchObject({ version: 2, data: { ...large, secret: 1 } })
    },
  )

  it('an editor who sends the stored visibility never undoes a change of it', async () => {
    const early = await shared(large)
    const first = await held(editor, early, { visibility: 'private' })
    const owners = reasonOf(update(ada, early, { visibility: 'public' }))
    await other.blocks(1)
    first.open()
    expect([await first.answer, await owners]).toEqual(['ok', 'ok'])
    expect(await stored(early)).toMatchObject({ visibility: 'public', version: 3 })

    const late = await shared(large)
    const change = await held(ada, late, { visibility: 'public' })
    const editors = reasonOf(update(editor, late, { visibility: 'private', data_patch: { a: 1 } }))
    await other.blocks(1)
    change.open()
    expect([await change.answer, await editors]).toEqual(['ok', 'cell_visibility_manage_only'])
    expect(await stored(late)).toMatchObject({ visibility: 'public', version: 2 })
  })
})

describe('an update without a lock, while its data is checked', () => {
  it.each<[string, (cell_id: string, grant_id: string) => Promise<unknown>]>([
    ['its grant is revoked', (_cell_id, grant_id) => ada.client.cell_grant_revoke({ grant_id })],
    [
      'it becomes a viewer',
      (cell_id) =>
        ada.client.cell_grant_create({ cell_id, level: 'viewer', principal: { actor_id: editor.actor_id } }),
    ],
    ['the cell is deleted', (cell_id) => ada.client.cell_delete({ cell_id })],
  ])('%s: it is refused, and nothing is written', async (_what, end) => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    const { id } = await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
    const late = await held(editor, cell_id, {})
    await end(cell_id, id)
    late.open()
    expect(await late.answer).toBe('cell_not_found')
    const row = await test.service.app.db.one(sql`select version, data from cell where id = ${cell_id}`)
    expect(row).toEqual({ version: 1, data: {} })
  })

  it('the cell changes: its patch is merged with what is there now, and a version it expects is refused', async () => {
    const cell_id = await shared({ a: 1 })
    const patch = await held(editor, cell_id, { data_patch: { b: 2 } })
    await update(ada, cell_id, { data: { a: 3 } })
    patch.open()
    expect(await patch.answer).toBe('ok')
    expect(await stored(cell_id)).toMatchObject({ version: 3, data: { a: 3, b: 2, wait: true } })

    const expecting = await held(editor, cell_id, { data_patch: { c: 1 }, expected_version: 3 })
    await update(ada, cell_id, { data: { a: 4 } })
    expecting.open()
    expect(await expecting.answer).toBe('cell_version_conflict')
    expect(await stored(cell_id)).toMatchObject({ version: 4, data: { a: 4 } })
  })
})

describe('update against update', () => {
  it('twenty with one expected_version: one wins, the others learn the new version', async () => {
    const cell_id = await shared()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 ? ada : editor).client.try.cell_update({ cell_id, data: { n }, expected_version: 1 }),
      ),
    )
    const refused = answers.filter((answer) => !answer.ok)
    expect(refused).toHaveLength(19)
    for (const answer of refused)
      expect(answer).toMatchObject({
        error: { reason: 'cell_version_conflict', data: { current_version: 2 } },
      })
    expect((await stored(cell_id)).version).toBe(2)
  })

  it('a hundred patches of different keys are all kept', async () => {
    const cell_id = await shared()
    const patches = Array.from({ length: 100 }, (_, n) =>
      untilServed(() => update(n % 2 ? ada : editor, cell_id, { data_patch: { [`k${n}`]: n } })),
    )
    expect(await tally(patches)).toEqual({ ok: 100 })
    const cell = await stored(cell_id)
    expect(cell.version).toBe(101)
    expect(cell.data).toEqual(Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`k${n}`, n])))
  })
})

describe('deletion', () => {
  it('of ten concurrent ones one succeeds, with one audit row', async () => {
    for (let round = 0; round < 5; round++) {
      const cell_id = await shared()
      await scenario(
        test,
        async () => {
          const calls = Array.from({ length: 10 }, (_, n) =>
            (n % 2 ? ada : root).client.cell_delete({ cell_id }),
          )
          expect(await tally(calls)).toEqual({ ok: 1, cell_not_found: 9 })
        },
        { audit: [{ event_type: 'cell_delete' }] },
      )
    }
  })

  it('with updates: each comes before it or is refused', async () => {
    for (let round = 0; round < 10; round++) {
      const cell_id = await shared()
      const updates = Array.from({ length: 4 }, (_, n) => update(editor, cell_id, { data_patch: { n } }))
      const [counts, deletion] = await Promise.all([
        tally(updates),
        reasonOf(ada.client.cell_delete({ cell_id })),
      ])
      expect(deletion).toBe('ok')
      const row = await test.service.app.db.first<{ version: number }>(sql`
        select version from cell where id = ${cell_id}`)
      expect(row?.version).toBe(1 + (counts.ok ?? 0))
      expect((counts.ok ?? 0) + (counts.cell_not_found ?? 0)).toBe(4)
    }
  })
})

describe('the purge of the acting actor', () => {
  it.each<[string, (account: TestAccount, cell_id: string) => Promise<unknown>]>([
    ['creates', ({ client }) => client.cell_create({ data: {} })],
    ['updates', (account, cell_id) => update(account, cell_id, { data: { a: 1 } })],
  ])('while it %s: account_vanished, nothing written', async (_what, act) => {
    const leaving = await test.account()
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    await test.cellGrant(cell_id, 'editor', { actor_id: leaving.actor_id })
    await other.begin('delete from actor where id = $1', [leaving.actor_id])
    const call = scenario(test, () => act(leaving, cell_id), { reason: 'account_vanished' })
    await other.blocks(1)
    await other.commit()
    await call
    expect((await stored(cell_id)).version).toBe(1)
  })

  it('its cells become system cells, and its last writes stay', async () => {
    const leaving = await test.account()
    const { cell } = await leaving.client.cell_create({ data: {} })
    await leaving.client.cell_update({ cell_id: cell.id, data: { a: 1 } })
    await test.service.app.db.run(sql`delete from account where id = ${leaving.id}`)
    expect(await stored(cell.id)).toMatchObject({
      created_by: null,
      updated_by: null,
      version: 2,
      data: { a: 1 },
    })
  })
})

describe('the purge of the grantee', () => {
  it('before the grant is written: cell_grant_unknown_actor', async () => {
    const leaving = await test.account()
    const cell_id = await shared()
    await other.begin('delete from actor where id = $1', [leaving.actor_id])
    const principal = { actor_id: leaving.actor_id }
    const late = scenario(test, () => ada.client.cell_grant_create({ cell_id, level: 'viewer', principal }), {
      reason: 'cell_grant_unknown_actor',
    })
    await Promise.all([late, other.blocks(1).then(other.commit)])
  })

  it('in the middle of grants to it: they succeed or know no such actor, and no row stays', async () => {
    const known = ['ok', 'cell_grant_unknown_actor']
    for (let round = 0; round < 10; round++) {
      const leaving = await test.account()
      const cell_id = await shared()
      const calls = (['viewer', 'editor', 'viewer', 'editor'] as const).map((level) =>
        reasonOf(ada.client.cell_grant_create({ cell_id, level, principal: { actor_id: leaving.actor_id } })),
      )
      const purge = test.service.operations.purgeAccount(
        { account_id: leaving.id, confirm: true },
        { via: 'test' },
      )
      const [, ...outcomes] = await Promise.all([purge, ...calls])
      for (const outcome of outcomes) expect(known).toContain(outcome)
      expect((await ada.client.cell_grant_list({ cell_id })).grants).toHaveLength(1)
      expect(await stored(cell_id)).toMatchObject({ version: 1 })
    }
  })
})

it('a slow hook holds up writers of its cell only, and no reader', async () => {
  const [cell_id, free] = [await shared({ a: 1 }), await shared()]
  const slow = await held(ada, cell_id, {})
  expect((await editor.client.cell_get({ id: cell_id })).cell).toMatchObject({ data: { a: 1 }, version: 1 })
  expect((await ada.client.cell_grant_list({ cell_id })).grants).toHaveLength(1)
  await update(editor, free, { data: { b: 1 } })
  slow.open()
  expect(await slow.answer).toBe('ok')
})

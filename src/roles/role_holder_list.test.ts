import { beforeEach, describe, expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { countedMax } from '../db/bounded-count.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'
import { examinedMax } from './holders.ts'

const room = '3b241101-e2bb-4255-8caf-4136c566a962'
const other = '4b241101-e2bb-4255-8caf-4136c566a962'
const test = await serviceForFile({
  roles: [{ name: 'teacher', grant_paths: ['admin'] }],
  scope_kinds: [{ name: 'room' }, { name: 'house' }],
  limit_admin_read: 'off',
})
let admin: TestAccount
beforeEach(async () => {
  await run(sql`delete from account`)
  admin = await test.account({ roles: ['admin'] })
})
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
type Input = Omit<Parameters<TestAccount['client']['role_holder_list']>[0], 'role'>
const list = (input: Input = {}) => admin.client.role_holder_list({ role: 'teacher', ...input })
const give = async ({ actor_id }: { actor_id: string }, scope_kind?: string, scope_id?: string) =>
  (
    await test.roleGrant({
      actor_id,
      role: 'teacher',
      granted_by: admin.actor_id,
      ...(scope_kind && { scope_kind, scope_id: scope_id ?? null }),
    })
  ).role_grant_id
const shown = ({ holders }: Awaited<ReturnType<typeof list>>) =>
  holders.map(({ role_grant }) => role_grant.id)

describe('role_holder_list', () => {
  it('shows every active grant with its actor and account: everywhere first, then by scope and age', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const second = await test.actor(ada.id, 'second')
    const grants = [
      await give(bob, 'room', other),
      await give(ada, 'room', room),
      await give(bob),
      await give({ actor_id: second }, 'house', room),
      await give(ada),
    ]
    const order = [2, 4, 3, 1, 0].map((nth) => grants[nth])
    const all = await list()
    expect(shown(all)).toEqual(order)
    expect(all).toMatchObject({ count: 5, next_cursor: null })
    expect(all.holders[2]).toEqual({
      role_grant: {
        id: grants[3],
        actor_id: second,
        role: 'teacher',
        scope_kind: 'house',
        scope_id: room,
        created_at: expect.stringMatching(/^.{23}Z$/),
        expires_at: null,
        granted_by: admin.actor_id,
      },
      actor: { id: second, name: 'second' },
      account: { id: ada.id, username: ada.username },
    })
    const paged: (string | undefined)[] = []
    for (let cursor: string | null = null; ; ) {
      const page: Awaited<ReturnType<typeof list>> = await list({ limit: 2, cursor })
      expect(page.count).toBe(cursor === null ? 5 : null)
      paged.push(...shown(page))
      cursor = page.next_cursor
      if (cursor === null) break
    }
    expect(paged).toEqual(order)
  })

  it('shows those of exactly one scope on request, of any kind or of one', async () => {
    const ada = await test.account()
    await give(ada)
    await give(ada, 'room', other)
    const [inHouse, inRoom] = [await give(ada, 'house', room), await give(ada, 'room', room)]
    expect(await list({ scope_id: room.toUpperCase() })).toMatchObject({ count: 2 })
    expect(shown(await list({ scope_id: room }))).toEqual([inHouse, inRoom])
    expect(shown(await list({ scope_id: room, scope_kind: 'room' }))).toEqual([inRoom])
    expect(await list({ scope_id: admin.id })).toEqual({ holders: [], count: 0, next_cursor: null })
    expect(await reasonOf(list({ scope_kind: 'room' }))).toBe('invalid_params')
  })

  it('takes the id of zeros for a scope like any other', async () => {
    const zeros = '00000000-0000-0000-0000-000000000000'
    const [ada, bob] = [await test.account(), await test.account()]
    const grants = [await give(ada, 'room', zeros), await give(bob), await give(ada, 'house', zeros)]
    const order = [1, 2, 0].map((nth) => grants[nth])
    expect(shown(await list())).toEqual(order)
    const there = await list({ scope_id: zeros })
    expect([shown(there), there.count]).toEqual([order.slice(1), 2])
    expect(shown(await list({ scope_id: zeros, scope_kind: 'room' }))).toEqual(order.slice(2))
    const { cell } = await admin.client.cell_create({ data: {} })
    await test.cellGrant(cell.id, 'viewer', { role: 'teacher', scope_id: zeros })
    await test.cellGrant(cell.id, 'viewer', { role: 'teacher', scope_id: null })
    const { everyone } = await admin.client.cell_access_explain({ cell_id: cell.id })
    expect(everyone?.grants.map(({ holders }) => holders)).toEqual([1, 2])
    expect(everyone?.admins).toBe(1)
  })

  it('leaves out what has ended, and removed actors and deleted accounts until they return', async () => {
    const ada = await test.account()
    const removed = await test.actor(ada.id, 'removed')
    await give({ actor_id: removed })
    await run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    for (const end of [
      'revoked_at = now()',
      'closed_at = now()',
      `expires_at = date_trunc('milliseconds', now())`,
    ])
      await run(
        sql`update role_grant set ${sql.raw(end)} where id = ${await give(await test.account())}::uuid`,
      )
    const grant = await give(ada)
    expect(await list()).toMatchObject({ count: 1, holders: [{ role_grant: { id: grant } }] })
    await ada.client.account_delete()
    expect(await list()).toMatchObject({ count: 0, holders: [] })
    await admin.client.account_undelete({ account_id: ada.id })
    expect(await list()).toMatchObject({ count: 1 })
  })

  it('is for admins alone', async () => {
    const { client } = await test.account({ roles: ['teacher'] })
    expect(await reasonOf(client.role_holder_list({ role: 'teacher' }))).toBe('insufficient_permissions')
  })

  it(`counts to ${countedMax} and examines ${examinedMax} grants at most, then goes on`, async () => {
    await run(sql`
      with made as (
        insert into account (username, password_hash, deleted_at)
        select 'zz' || i, 'x', case when i <= ${examinedMax}::int then now() end
        from generate_series(1, ${examinedMax + countedMax + 1}::int) i returning id, username
      ), actors as (
        insert into actor (account_id, name, name_key) select id, '', '' from made returning id, account_id
      )
      insert into role_grant (actor_id, role, created_at)
      select actors.id, 'teacher', now() + substr(username, 3)::int * interval '1 ms'
      from actors join made on made.id = actors.account_id`)
    await run(sql`analyze account, actor, role_grant`)
    const first = await list({ limit: 20 })
    expect(first).toMatchObject({ holders: [], count: 0 })
    const second = await list({ limit: 20, cursor: first.next_cursor })
    expect(second.holders).toHaveLength(20)
    const { scanned, rows } = await workOf(test.databaseUrl, () =>
      list({ limit: 20, cursor: first.next_cursor }),
    )
    expect(scanned).toEqual([])
    expect(rows.account).toBeLessThanOrEqual(21)
    await run(sql`update account set deleted_at = null`)
    expect(await list()).toMatchObject({ count: countedMax })
    const counting = await workOf(test.databaseUrl, () => list())
    expect(counting.scanned).toEqual([])
    expect(counting.rows.account).toBeLessThanOrEqual(countedMax)
  })
})

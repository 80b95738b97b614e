import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { tokenOf } from '../../../test/helpers/callers.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { rival } from '../../../test/helpers/race.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { numberRows } from '../../audit/numbering.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount, testService } from '../../testing/index.ts'
import { insertAccount } from '../accounts.ts'

let keeper: TestAccount
let admin: TestAccount
const test = await serviceForFile()
const client = test.daemonClient()
beforeEach(async () => {
  await run(sql`delete from account`)
  await run(sql`delete from role_grant_offer`)
  keeper = await test.account({ roles: ['keeper'] })
  admin = await test.account({ roles: ['admin'] })
})

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const rows = <T>(statement: ReturnType<typeof sql>) => test.service.app.db.rows<T>(statement)
const purge = ({ id }: { id: string }) => client.account_purge({ account_id: id, confirm: true })
const nobody = '00000000-0000-4000-8000-000000000000'

/** The number of rows that hold this text anywhere, by table. */
async function mentions(text: string): Promise<Record<string, number>> {
  await numberRows(test.service.app.db)
  const tables = await rows<{ name: string }>(sql`
    select relname as name from pg_class
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`)
  const found: Record<string, number> = {}
  for (const { name } of tables) {
    const hits = await rows(sql`
      select from ${sql.raw(`"${name}"`)} t where strpos(to_jsonb(t)::text, ${text}) > 0`)
    if (hits.length > 0) found[name] = hits.length
  }
  return found
}

type Offer = { from: TestAccount; to: TestAccount; accepted?: string; lapsed?: boolean }
async function offer({ from, to, accepted, lapsed }: Offer): Promise<string> {
  const [row] = await rows<{ offer_id: string }>(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, accepted_at,
      resulting_role_grant_id, expires_at)
    values (${from.actor_id}, ${from.id}, ${to.id}, 'admin', ${accepted ? '2026-01-01T00:00:00Z' : null},
      ${accepted ?? null}, now() + ${lapsed ? '-1 day' : '1 day'}::interval)
    returning offer_id`)
  return (row as { offer_id: string }).offer_id
}
const stateOf = (offer_id: string) =>
  rows(sql`
    select superseded_at is not null as is_superseded, accepted_at is not null as is_accepted,
      resulting_role_grant_id as grant from role_grant_offer where offer_id = ${offer_id}::uuid`)

describe('an account that is purged', () => {
  it.each(['active', 'deleted'])(
    '%s, is removed with its actors; the log keeps its names once',
    async (state) => {
      const ada = await test.account({ username: `ada-${state}`, email: `Ada-${state}@example.com` })
      const second = await test.actor(ada.id, 'second')
      if (state === 'deleted') await ada.client.account_delete({ acting: ada.actor_id })
      const envelope = { account_id: keeper.id, actor_id: keeper.actor_id, target_account_id: ada.id }
      const answer = await scenario(test, () => purge(ada), {
        audit: [
          {
            event_type: 'account_purge',
            ...envelope,
            target_actor_id: null,
            metadata: {
              username: `ada-${state}`,
              email: `Ada-${state}@example.com`,
              credential_type: 'daemon_token',
            },
          },
          ...[ada.actor_id, second].sort().map((target_actor_id) => ({
            event_type: 'actor_purge',
            ...envelope,
            target_actor_id,
            metadata: null,
          })),
        ],
      })
      expect(answer).toEqual({ ok: true, purged: true })
      expect(Object.keys(await mentions(ada.id))).toEqual(['audit_log'])
      expect(Object.keys(await mentions(ada.actor_id))).toEqual(['audit_log'])
      expect(await mentions(`ada-${state}`)).toEqual({ audit_log: 1 })
    },
  )

  it('frees its username and e-mail, which deletion alone did not', async () => {
    const ada = await test.account({ username: 'freed', email: 'Freed@example.com' })
    const insert = () =>
      insertAccount(test.service.app.db, {
        username: 'freed',
        email: 'fREED@example.com',
        password_hash: 'x',
        created_by: null,
      })
    await ada.client.account_delete()
    await expect(insert()).rejects.toMatchObject({ data: { reason: 'username_taken' } })
    await purge(ada)
    expect(await insert()).toMatchObject({ account_id: expect.any(String) })
  })

  it('is nobody from the next request on, by any carrier', async () => {
    const ada = await test.account()
    const { username, password } = ada
    const token = await tokenOf(test, ada)
    await purge(ada)
    for (const gone of [ada.client, token.client])
      expect(await reasonOf(gone.account_verify())).toBe('authentication_required')
    expect(await reasonOf(test.client().account.login({ username, password }))).toBe('invalid_credentials')
  })

  it('leaves every audit row as it was', async () => {
    const ada = await test.account()
    await tokenOf(test, ada)
    await ada.client.account_delete()
    await admin.client.account_undelete({ account_id: ada.id })
    const log = () => rows<{ written: number }>(sql`select * from audit_entries() order by written`)
    const before = await log()
    await purge(ada)
    expect((await log()).slice(0, before.length)).toEqual(before)
  })

  it('takes its own cells’ grants and its place in others’ along, and leaves all cells and edges', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const [own, foreign] = await Promise.all([
      ada.client.cell_create({ data: { of: 'ada' } }),
      bob.client.cell_create({ data: { of: 'bob' } }),
    ])
    await run(sql`update cell set updated_by = ${ada.actor_id} where id = ${foreign.cell.id}`)
    await test.cellGrant(own.cell.id, 'viewer', { actor_id: bob.actor_id })
    await test.cellGrant(foreign.cell.id, 'editor', { actor_id: ada.actor_id })
    await run(sql`update cell_grant set granted_by = ${ada.actor_id} where cell_id = ${own.cell.id}`)
    await run(sql`
      insert into cell_field (source_id, name, target_id) values (${own.cell.id}, 'next', ${foreign.cell.id})`)
    await run(sql`
      insert into cell_item (parent_id, position, child_id) values (${foreign.cell.id}, 'a', ${own.cell.id})`)
    await purge(ada)
    expect(
      await rows(sql`select id, created_by, updated_by, version from cell order by created_at, id`),
    ).toEqual(
      expect.arrayContaining([
        { id: own.cell.id, created_by: null, updated_by: null, version: 1 },
        { id: foreign.cell.id, created_by: bob.actor_id, updated_by: null, version: 1 },
      ]),
    )
    expect(await rows(sql`select actor_id, granted_by from cell_grant`)).toEqual([
      { actor_id: bob.actor_id, granted_by: null },
    ])
    expect(await mentions(foreign.cell.id)).toMatchObject({ cell_field: 1, cell_item: 1 })
    expect((await bob.client.cell_get({ id: own.cell.id })).cell.id).toBe(own.cell.id)
  })

  it('ends the offers it made and removes those made to it, settled ones with them', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const granted = (await test.roleGrant({ actor_id: bob.actor_id, role: 'admin' })).role_grant_id
    const received = (await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })).role_grant_id
    const made = [await offer({ from: ada, to: bob }), await offer({ from: ada, to: admin })].sort()
    const lapsed = await offer({ from: ada, to: keeper, lapsed: true })
    const accepted = await offer({ from: ada, to: bob, accepted: granted })
    const others = await offer({ from: bob, to: admin })
    const gone = [
      await offer({ from: bob, to: ada }),
      await offer({ from: bob, to: ada, accepted: received }),
      await offer({ from: ada, to: ada }),
    ]
    await run(sql`update role_grant set source_offer_id = ${gone[1]} where id = ${granted}`)
    await run(sql`update role_grant set granted_by = ${ada.actor_id} where id = ${granted}`)
    const to = new Map(
      (await rows<{ offer_id: string; to_account_id: string }>(sql`select * from role_grant_offer`)).map(
        (row) => [row.offer_id, row.to_account_id],
      ),
    )
    await scenario(test, () => purge(ada), {
      audit: [
        { event_type: 'account_purge', target_account_id: ada.id },
        { event_type: 'actor_purge', target_account_id: ada.id, target_actor_id: ada.actor_id },
        ...made.map((offer_id) => ({
          event_type: 'role_grant_offer_supersede',
          account_id: keeper.id,
          actor_id: keeper.actor_id,
          target_account_id: to.get(offer_id) as string,
          target_actor_id: null,
          metadata: {
            offer_id,
            role: 'admin',
            scope_kind: null,
            scope_id: null,
            reason: 'grantor_lost_authority',
            cause_id: ada.id,
          },
        })),
      ],
      notify: made.map(() => ({ account_id: ada.id, method: 'role_grant_offer_supersede' })),
    })
    const state = (is_superseded: boolean, grant: string | null = null) => [
      { is_superseded, is_accepted: grant !== null, grant },
    ]
    for (const id of made) expect(await stateOf(id)).toEqual(state(true))
    expect(await stateOf(lapsed)).toEqual(state(false))
    expect(await stateOf(accepted)).toEqual(state(false, granted))
    expect(await stateOf(others)).toEqual(state(false))
    for (const id of gone) expect(await stateOf(id)).toEqual([])
    expect(await reasonOf(bob.client.admin_session_list())).toBe('ok')
  })

  it('stays named by what it deleted and granted, which needs no row of it', async () => {
    const ada = await test.account({ roles: ['admin'] })
    const bob = await test.account()
    await ada.client.account_delete({ account_id: bob.id })
    await purge(ada)
    const { accounts } = await admin.client.admin_account_list({ include_deleted: true })
    expect(accounts.find(({ account }) => account.id === bob.id)?.account.deleted_by).toBe(ada.actor_id)
  })
})

describe('account_purge', () => {
  it('judges role before confirmation before existence, and leaves no row for what it did not look for', async () => {
    const ada = await test.account()
    for (const confirm of [undefined, false])
      for (const account_id of [ada.id, nobody])
        await scenario(
          test,
          () => client.account_purge({ account_id, ...(confirm !== undefined && { confirm }) }),
          { reason: 'purge_not_confirmed' },
        )
    for (const confirm of [null, 'true', 1, {}])
      await scenario(
        test,
        () => client.account_purge({ account_id: ada.id, confirm: confirm as unknown as boolean }),
        { reason: 'invalid_params' },
      )
    expect(await reasonOf(admin.client.account_purge({ account_id: nobody }))).toBe(
      'credential_type_required',
    )
    await run(sql`insert into role_grant (actor_id, role) values (${keeper.actor_id}, 'admin')`)
    const second = await test.actor(keeper.id, 'second')
    for (const params of [{ account_id: 7 }, { account_id: nobody }])
      expect(
        await reasonOf(client.account_purge({ ...(params as { account_id: string }), acting: second })),
      ).toBe('insufficient_permissions')
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('a second time is not found', async () => {
    const ada = await test.account()
    await purge(ada)
    await expect(purge(ada)).rejects.toMatchObject({ reason: 'account_not_found', status: 404 })
  })

  it('of one account at the same time succeeds once', async () => {
    const ada = await test.account()
    const outcomes = await Promise.all(
      Array.from(
        { length: 5 },
        async () => await reasonOf(client.account_purge({ account_id: ada.id.toUpperCase(), confirm: true })),
      ),
    )
    expect(outcomes.sort()).toEqual([...Array(4).fill('account_not_found'), 'ok'])
  })

  it('waits for a cell that its own actor is writing, and holds nothing that the write needs', async () => {
    const ada = await test.account()
    const { cell } = await ada.client.cell_create({ data: {} })
    const writer = await rival(test.databaseUrl)
    onTestFinished(() => writer.close())
    await writer.begin('select from cell where id = $1 for update', [cell.id])
    const purged = reasonOf(purge(ada))
    await writer.blocks(1)
    await writer.query(`set local lock_timeout = '300ms'`)
    await writer.query('update cell set updated_by = $1 where id = $2', [ada.actor_id, cell.id])
    await writer.commit()
    expect(await purged).toBe('ok')
    expect(await rows(sql`select created_by, updated_by from cell where id = ${cell.id}`)).toEqual([
      { created_by: null, updated_by: null },
    ])
  })

  it('may have more cells than one statement could change in its time', async () => {
    const ada = await test.account()
    await run(sql`
      insert into cell (id, created_by, data, data_bytes)
      select lpad(to_hex(n), 32, '0')::uuid, ${ada.actor_id}::uuid, case n % 2000 when 1 then '{"slow":1}' else '{}' end::jsonb, 2
      from generate_series(1, 4001) n`)
    await run(sql`
      create function linger() returns trigger language plpgsql as
        $$ begin perform pg_sleep(1); return new; end $$`)
    await run(sql`
      create trigger lingers before update on cell for each row when (old.data ? 'slow') execute function linger()`)
    onTestFinished(async () => void (await run(sql`drop function linger cascade`)))
    await using hasty = await testService({ database_url: test.databaseUrl, statement_timeout_ms: 2_500 })
    expect(await hasty.daemonClient().account_purge({ account_id: ada.id, confirm: true })).toMatchObject({
      purged: true,
    })
    expect(await rows(sql`select from cell where created_by is not null limit 1`)).toEqual([])
  })
})

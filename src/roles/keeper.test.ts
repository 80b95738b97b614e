import { beforeEach, expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile()
beforeEach(() => test.service.app.db.run(sql`delete from role_grant`))

const by = { via: 'cli' }
const ops = () => test.service.operations
const keepers = async () =>
  (
    await test.service.app.db.rows<{ actor_id: string }>(sql`
      select actor_id from role_grant
      where role = 'keeper' and scope_id is null and revoked_at is null and closed_at is null`)
  ).map(({ actor_id }) => actor_id)
const transfer = ({ actor_id }: Pick<TestAccount, 'actor_id'>) => ops().transferKeeper({ actor_id }, by)
const scope = { scope_kind: null, scope_id: null }

it('moves keeper in one transaction, with a row for the new grant and a row for each that ends', async () => {
  const [ada, bob] = await Promise.all([test.account({ roles: ['keeper', 'admin'] }), test.account()])
  const [old] = (await ops().findAccount({ ref: ada.id })).role_grants.filter(({ role }) => role === 'keeper')
  const rows = (role_grant_id: unknown) => [
    {
      event_type: 'role_grant_create',
      target_actor_id: bob.actor_id,
      target_account_id: bob.id,
      metadata: {
        role: 'keeper',
        role_grant_id,
        ...scope,
        expires_at: null,
        source: 'keeper_transfer',
        via: 'cli',
      },
    },
    {
      event_type: 'role_grant_revoke',
      target_actor_id: ada.actor_id,
      target_account_id: ada.id,
      metadata: { role: 'keeper', role_grant_id: old?.id, ...scope, cause: 'keeper_transfer', via: 'cli' },
    },
  ]
  const done = await scenario(test, () => transfer(bob), {
    audit: rows(expect.anything()).map(({ metadata, ...row }) => row),
    notify: [
      {
        account_id: ada.id,
        method: 'role_grant_revoke',
        params: { role_grant_id: old?.id as string, role: 'keeper', scope_id: null },
      },
    ],
  })
  expect(done).toMatchObject({ created: true, revoked: [{ role_grant_id: old?.id, actor_id: ada.actor_id }] })
  const written = await test.service.app.db.rows<{ metadata: unknown }>(sql`
    select metadata from audit_entries() order by written desc limit 2`)
  expect(written.map(({ metadata }) => metadata).reverse()).toEqual(
    rows(done.role_grant_id).map(({ metadata }) => metadata),
  )
  expect(await keepers()).toEqual([bob.actor_id])
  expect(await scenario(test, () => transfer(bob))).toEqual({ ...done, created: false, revoked: [] })
})

it('the daemon token then acts as the new keeper, and the old one can be deleted', async () => {
  const [ada, bob] = await Promise.all([
    test.account({ roles: ['keeper'] }),
    test.account({ roles: ['admin'] }),
  ])
  expect((await test.daemonClient().account_verify()).id).toBe(ada.id)
  await expect(ops().deleteAccount({ account_id: ada.id }, by)).rejects.toThrow('cannot_delete_keeper')
  await transfer(bob)
  expect((await test.daemonClient().account_verify()).id).toBe(bob.id)
  await ops().deleteAccount({ account_id: ada.id }, by)

  const before = test.daemonToken.current
  test.daemonToken.rotate()
  expect((await test.daemonClient(before).account_verify()).id).toBe(bob.id)
  test.daemonToken.rotate()
  await expect(test.daemonClient(before).account_verify()).rejects.toMatchObject({
    reason: 'authentication_required',
  })
  await expect(
    test.daemonClient().account_purge({ account_id: ada.id, confirm: true }),
  ).resolves.toMatchObject({
    purged: true,
  })
})

it('ends keeper grants of removed actors and deleted accounts, and every one of several', async () => {
  const accounts = await Promise.all([test.account(), test.account(), test.account()])
  const second = await test.actor(accounts[0].id, 'second')
  for (const actor_id of [second, accounts[1].actor_id]) await test.roleGrant({ actor_id, role: 'keeper' })
  await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${second}::uuid`)
  await test.service.app.db.run(sql`update account set deleted_at = now() where id = ${accounts[1].id}::uuid`)
  const { revoked } = await transfer(accounts[2])
  expect(revoked.map(({ actor_id }) => actor_id).sort()).toEqual([second, accounts[1].actor_id].sort())
  expect(await keepers()).toEqual([accounts[2].actor_id])
})

it('makes a keeper grant that would expire last for good', async () => {
  const { actor_id } = await test.account()
  const soon = new Date(Date.now() + 60_000).toISOString()
  const { role_grant_id } = await test.roleGrant({ actor_id, role: 'keeper', expires_at: soon })
  const done = await scenario(test, () => transfer({ actor_id }), {
    audit: [{ event_type: 'role_grant_create' }],
  })
  expect(done).toEqual({ role_grant_id, created: false, revoked: [] })
  const [grant] = (
    await ops().findAccount({ ref: (await ops().listAccounts()).accounts.at(-1)?.account.id ?? '' })
  ).role_grants
  expect(grant?.expires_at).toBeNull()
})

it('refuses an actor that is not live', async () => {
  const ada = await test.account({ roles: ['keeper'] })
  const gone = await test.account()
  await ops().deleteAccount({ account_id: gone.id }, by)
  await scenario(test, () => transfer(gone), { reason: 'actor_not_found' })
  expect(await keepers()).toEqual([ada.actor_id])
})

it('any number of transfers at once leave exactly one keeper', async () => {
  const accounts = await Promise.all(Array.from({ length: 5 }, () => test.account()))
  await transfer(accounts[0] as TestAccount)
  for (let round = 0; round < 10; round++) {
    await Promise.all(accounts.map(transfer))
    expect(await keepers()).toHaveLength(1)
  }
})

it('uses up the bootstrap, also of a keeper that is made at the same moment: there is one keeper', async () => {
  const first = (nth: number) =>
    ops().createAccount({ username: `first${nth}`, password: 'a long password', keeper: true }, by)
  for (let round = 0; round < 10; round++) {
    await test.reset()
    const ada = await test.account()
    await Promise.all([transfer(ada), reasonOf(first(round))])
    expect(await keepers()).toHaveLength(1)
    expect(await reasonOf(first(100 + round))).toBe('already_bootstrapped')
  }
})

it('interrupted before it commits, it leaves the old keeper alone', async () => {
  const [ada, bob] = await Promise.all([test.account({ roles: ['keeper'] }), test.account()])
  const other = await rival(test.databaseUrl)
  try {
    // Stops the transfer after the new grant: ending the old one waits for this row.
    await other.begin(`select from role_grant where role = 'keeper' for update`)
    const outcome = transfer(bob).catch((error) => error.data.reason)
    // The transaction is retried once, and interrupted there too.
    for (const _time of [1, 2]) {
      await other.blocks(1)
      await other.query(`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`)
    }
    expect(await outcome).toBe('service_unavailable')
    await other.commit()
  } finally {
    await other.close()
  }
  expect(await keepers()).toEqual([ada.actor_id])
  await transfer(bob)
  expect(await keepers()).toEqual([bob.actor_id])
})

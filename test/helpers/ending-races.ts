import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import {
  admin,
  adminCount,
  type Contender,
  call,
  credentials,
  leftOf,
  login,
  offer,
  only,
  operator,
  type Race,
  race,
  revoke,
  rows,
} from './race-tools.ts'

const full = { scope: { kind: 'full' }, lifetime: { kind: 'eternal' } }

/** Each call would end one of the only two admins, so exactly one succeeds. */
const twoAdmins =
  (
    refusals: readonly string[],
    contend: (world: TestService, ada: TestAccount, bob: TestAccount) => Contender[] | Promise<Contender[]>,
  ): Race =>
  async (world) => {
    const contenders = await contend(world, await admin(world), await admin(world))
    const outcomes = await race(contenders)
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1, `exactly one succeeds: ${outcomes}`)
    only(outcomes, ['ok', ...refusals])
    assert.equal(await adminCount(world), 1, 'one global admin remains')
    return outcomes.join(' / ')
  }

/** Races of accounts, credentials and grants that end. */
export const endingRaces: Record<string, Race> = {
  // If the account is deleted before its own call is read, the caller is anonymous.
  'two admins delete each other': twoAdmins(
    ['cannot_delete_last_admin', 'authentication_required'],
    (world, ada, bob) => [
      call(world, ada, 'account_delete', { account_id: bob.id }),
      call(world, bob, 'account_delete', { account_id: ada.id }),
    ],
  ),

  'two admins delete themselves': twoAdmins(['cannot_delete_last_admin'], (world, ada, bob) => [
    call(world, ada, 'account_delete'),
    call(world, bob, 'account_delete'),
  ]),

  'four admins delete each other in a ring': async (world) => {
    const ring: TestAccount[] = []
    for (let i = 0; i < 4; i++) ring.push(await admin(world))
    const outcomes = await race(
      ring.map((one, i) => call(world, one, 'account_delete', { account_id: ring[(i + 1) % 4]?.id })),
    )
    only(outcomes, ['ok', 'cannot_delete_last_admin', 'authentication_required', 'account_not_found'])
    assert.equal(await adminCount(world), 4 - outcomes.filter((one) => one === 'ok').length)
    assert.notEqual(await adminCount(world), 0)
    return `${outcomes.filter((one) => one === 'ok').length} of 4 end`
  },

  'an admin deletes the other while its own grant is revoked': twoAdmins(
    ['cannot_delete_last_admin', 'cannot_revoke_last_admin', 'insufficient_permissions'],
    (world, ada, bob) => [call(world, ada, 'account_delete', { account_id: bob.id }), revoke(world, ada)],
  ),

  'an admin deletes itself while the grant of the other is revoked': twoAdmins(
    ['cannot_delete_last_admin', 'cannot_revoke_last_admin'],
    (world, ada, bob) => [call(world, ada, 'account_delete'), revoke(world, bob)],
  ),

  'both admin grants are revoked': twoAdmins(['cannot_revoke_last_admin'], (world, ada, bob) => [
    revoke(world, ada),
    revoke(world, bob),
  ]),

  'an admin actor is removed while the other admin is deleted or purged': twoAdmins(
    ['cannot_delete_last_admin'],
    async (world, ada, bob) => {
      await world.actor(ada.id, 'spare')
      const { removeActor, deleteAccount, purgeAccount } = world.service.operations
      const target = { account_id: bob.id }
      return [
        () => removeActor({ actor_id: ada.actor_id }, operator),
        () =>
          Math.random() < 0.5
            ? deleteAccount(target, operator)
            : purgeAccount({ ...target, confirm: true }, operator),
      ]
    },
  ),

  'both admin actors are removed': twoAdmins(['cannot_delete_last_admin'], async (world, ada, bob) => {
    for (const { id } of [ada, bob]) await world.actor(id, 'spare')
    const { removeActor } = world.service.operations
    return [ada, bob].map(
      ({ actor_id }) =>
        () =>
          removeActor({ actor_id }, operator),
    )
  }),

  'an account is deleted while it signs in and makes tokens': async (world) => {
    const ada = await world.account()
    const [ended, ...made] = await race([
      call(world, ada, 'account_delete'),
      login(world, ada),
      call(world, ada, 'account_token_create', full),
      login(world, ada),
      call(world, ada, 'account_token_create', full),
    ])
    assert.equal(ended, 'ok')
    only(made, ['ok', 'invalid_credentials', 'account_vanished', 'authentication_required'])
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    return `${made.filter((one) => one === 'ok').length} of 4 made before`
  },

  'tokens are made beyond the cap': async (world) => {
    const ada = await world.account()
    const outcomes = await race(
      Array.from({ length: 14 }, () => call(world, ada, 'account_token_create', full)),
    )
    only(outcomes, ['ok'])
    assert.equal((await credentials(world, ada)).tokens, world.service.app.config.max_tokens)
    return 'ten left'
  },

  'the password changes while tokens are made and sessions opened with the old one': async (world) => {
    const ada = await world.account()
    const [changed, ...made] = await race([
      () =>
        world
          .client(ada.cookie)
          .account.password({ current_password: ada.password, new_password: 'another password' }),
      call(world, ada, 'account_token_create', full),
      login(world, ada),
      call(world, ada, 'account_token_create', full),
      login(world, ada),
    ])
    assert.equal(changed, 'ok')
    only(made, ['ok', 'invalid_credentials', 'authentication_required'])
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    return `${made.filter((one) => one === 'ok').length} of 4 made before`
  },

  'all sessions are ended while one of them makes a token': async (world) => {
    const [ada, bob] = [await world.account(), await admin(world)]
    const [ended, made] = await race([
      call(world, bob, 'admin_session_revoke_all', { account_id: ada.id }),
      call(world, ada, 'account_token_create', full),
    ])
    assert.equal(ended, 'ok')
    only([made as string], ['ok', 'authentication_required'])
    const written = await rows<{ event_type: string }>(
      world,
      sql`select event_type from audit_entries()
        where event_type in ('token_create', 'session_revoke_all') and outcome = 'success'
          and ${ada.id}::uuid in (account_id, target_account_id)
        order by written`,
    )
    // Both write under the lock of the account, so rows are written in the order of the commits.
    assert.deepEqual(
      written.map(({ event_type }) => event_type),
      made === 'ok' ? ['token_create', 'session_revoke_all'] : ['session_revoke_all'],
      'no token is made by a dead session',
    )
    return made as string
  },

  'an account is deleted, undeleted and purged': async (world) => {
    const [ada, bob] = [await world.account(), await admin(world)]
    const of = { account_id: ada.id }
    const outcomes = await race([
      call(world, bob, 'account_delete', of),
      call(world, bob, 'account_undelete', of),
      call(world, bob, 'account_delete', of),
      call(world, bob, 'account_undelete', of),
      () => world.service.operations.purgeAccount({ ...of, confirm: true }, operator),
    ])
    assert.equal(outcomes.at(-1), 'ok')
    only(outcomes, ['ok', 'account_not_found'])
    assert.deepEqual(await leftOf(world, ada), [])
    return `${outcomes.filter((one) => one === 'ok').length - 1} changes before`
  },

  'an account is purged in the middle of all it does and all that is done to it': async (world) => {
    const [ada, bob] = [await admin(world), await admin(world)]
    const token = (await bob.client.account_token_create(full as never)) as { id: string }
    const own = (await ada.client.cell_create({ data: {} })).cell.id
    const theirs = (await bob.client.cell_create({ data: {} })).cell.id
    await world.cellGrant(theirs, 'editor', { actor_id: ada.actor_id })
    const of = { account_id: ada.id }
    const { purgeAccount, revokeSessions, addActor, grantRole } = world.service.operations
    const grant = { actor_id: ada.actor_id, role: 'admin', path: 'admin' }
    const [purged, ...others] = await race([
      () => purgeAccount({ ...of, confirm: true }, operator),
      login(world, ada),
      call(world, ada, 'account_token_create', full),
      call(world, ada, 'cell_create', { data: {} }),
      call(world, ada, 'cell_update', { cell_id: own, data: { a: 1 } }),
      call(world, ada, 'cell_update', { cell_id: theirs, data: { a: 1 } }),
      call(world, ada, 'account_delete'),
      call(world, ada, 'admin_session_revoke_all', { account_id: bob.id }),
      call(world, ada, 'account_token_revoke', { token_id: token.id }),
      call(world, bob, 'account_undelete', of),
      call(world, bob, 'admin_token_revoke_all', of),
      call(world, bob, 'admin_account_list'),
      call(world, bob, 'actor_search', { query: 'u' }),
      () => revokeSessions(of, operator),
      () => addActor({ ...of, name: 'late' }, operator),
      () => grantRole(grant, operator),
      () => offer(world, bob, ada),
      () => offer(world, ada, bob),
    ])
    assert.equal(purged, 'ok')
    only(others, [
      'ok',
      'invalid_credentials',
      'authentication_required',
      'account_vanished',
      'account_not_found',
      // The account has a second actor from `addActor` on.
      'actor_required',
      'actor_not_found',
      'cell_not_found',
      'refused_by_constraint',
      // A cell write and the purge of its own actor may deadlock twice.
      'service_unavailable',
    ])
    assert.deepEqual(await leftOf(world, ada), [])
    return `${others.filter((one) => one === 'ok').length} of ${others.length} before or beside it`
  },
}

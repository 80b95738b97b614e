import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { freshService } from './joining-races.ts'
import { credentials, login, only, operator, type Race, race, rows } from './race-tools.ts'

const password = 'a long password'
const ok = (outcomes: readonly string[]): number => outcomes.filter((one) => one === 'ok').length
const keeper = (world: TestService): Promise<TestAccount> => world.account({ roles: ['keeper', 'admin'] })

async function oneKeeper(world: TestService): Promise<void> {
  const keepers = await rows(
    world,
    sql`select from role_grant g join actor on actor.id = g.actor_id
      where g.role = 'keeper' and g.revoked_at is null and g.closed_at is null`,
  )
  assert.equal(keepers.length, 1, 'exactly one keeper remains')
}

/** Races of operator commands with each other and with what people do. */
export const operatorRaces: Record<string, Race> = {
  'an operator makes the account that a signup makes': async (world) => {
    await world.service.operations.setSettings({ open_signup: true }, operator)
    const outcomes = await race([
      () => world.service.operations.createAccount({ username: 'newcomer', password }, operator),
      () => world.client().account.signup({ username: 'newcomer', password }),
    ])
    only([outcomes.join(' / ')], ['ok / signup_conflict', 'username_taken / ok'])
    return outcomes.join(' / ')
  },

  'an operator makes the keeper while the bootstrap token is used': async () => {
    const { world, token, close } = await freshService()
    try {
      const root = { username: 'root', password }
      const outcomes = await race([
        () => world.service.operations.createAccount({ ...root, keeper: true }, operator),
        () => world.client().account.bootstrap({ token, ...root, username: 'other' }),
      ])
      only([outcomes.join(' / ')], ['ok / already_bootstrapped', 'already_bootstrapped / ok'])
      await oneKeeper(world)
      return outcomes.join(' / ')
    } finally {
      await close()
    }
  },

  'the keeper moves to three accounts': async (world) => {
    const { transferKeeper } = world.service.operations
    await keeper(world)
    const next = [await world.account(), await world.account(), await world.account()]
    const outcomes = await race(
      next.map(
        ({ actor_id }) =>
          () =>
            transferKeeper({ actor_id }, operator),
      ),
    )
    only(outcomes, ['ok'])
    await oneKeeper(world)
    return 'one keeper'
  },

  'the keeper moves while the old one is deleted and purged': async (world) => {
    const { transferKeeper, deleteAccount, purgeAccount } = world.service.operations
    const [old, next] = [await keeper(world), await world.account({ roles: ['admin'] })]
    const [moved, ...ended] = await race([
      () => transferKeeper({ actor_id: next.actor_id }, operator),
      () => deleteAccount({ account_id: old.id }, operator),
      () => purgeAccount({ account_id: old.id, confirm: true }, operator),
    ])
    assert.equal(moved, 'ok')
    only(ended, ['ok', 'cannot_delete_keeper', 'account_not_found'])
    await oneKeeper(world)
    return ended.join(' / ')
  },

  'the keeper moves to an account that is purged': async (world) => {
    const { transferKeeper, purgeAccount } = world.service.operations
    await keeper(world)
    const next = await world.account()
    const outcomes = await race([
      () => transferKeeper({ actor_id: next.actor_id }, operator),
      () => purgeAccount({ account_id: next.id, confirm: true }, operator),
    ])
    only([outcomes.join(' / ')], ['ok / cannot_delete_keeper', 'actor_not_found / ok'])
    await oneKeeper(world)
    return outcomes.join(' / ')
  },

  'both actors of an account are removed': async (world) => {
    const ada = await world.account()
    const second = await world.actor(ada.id, 'second')
    const outcomes = await race(
      [ada.actor_id, second].map(
        (actor_id) => () => world.service.operations.removeActor({ actor_id }, operator),
      ),
    )
    only(outcomes, ['ok', 'last_actor'])
    assert.equal(ok(outcomes), 1)
    return outcomes.join(' / ')
  },

  'actors are added beyond the cap': async (world) => {
    const ada = await world.account()
    const max = world.service.app.config.max_actors as number
    const outcomes = await race(
      Array.from({ length: max + 3 }, (_, i) => () => {
        return world.service.operations.addActor({ account_id: ada.id, name: `actor ${i}` }, operator)
      }),
    )
    only(outcomes, ['ok', 'actor_limit'])
    assert.equal(ok(outcomes), max - 1)
    return `${max} actors`
  },

  'an operator sets the password while sessions are opened with the old one': async (world) => {
    const ada = await world.account()
    const [set, ...made] = await race([
      () =>
        world.service.operations.setPassword({ account_id: ada.id, password: 'another password' }, operator),
      login(world, ada),
      login(world, ada),
      login(world, ada),
    ])
    assert.equal(set, 'ok')
    only(made, ['ok', 'invalid_credentials'])
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    return `${ok(made)} of 3 made before`
  },

  'an operator ends every session while some are opened': async (world) => {
    const ada = await world.account()
    const outcomes = await race([
      () => world.service.operations.revokeSessions({ account_id: ada.id }, operator),
      login(world, ada),
      login(world, ada),
    ])
    only(outcomes, ['ok'])
    // Rows are written under the lock of the account, so in the order of the commits.
    const written = await rows<{ event_type: string }>(
      world,
      sql`select event_type from audit_entries()
        where event_type in ('login', 'session_revoke_all') and outcome = 'success'
          and ${ada.id}::uuid in (account_id, target_account_id)
        order by written`,
    )
    const after = written.slice(written.findIndex((one) => one.event_type === 'session_revoke_all') + 1)
    assert.equal((await credentials(world, ada)).sessions, after.length, 'only what was opened later lives')
    return `${after.length} of 2 opened later`
  },

  'one e-mail is set on two accounts': async (world) => {
    const both = [await world.account(), await world.account()]
    const outcomes = await race(
      both.map(
        ({ id }) =>
          () =>
            world.service.operations.setEmail({ account_id: id, email: 'one@x.io' }, operator),
      ),
    )
    only(outcomes, ['ok', 'email_taken'])
    assert.equal(ok(outcomes), 1)
    return outcomes.join(' / ')
  },

  'a role is assigned four times while the actor is removed': async (world) => {
    const ada = await world.account()
    const actor_id = await world.actor(ada.id, 'second')
    const { grantRole, removeActor } = world.service.operations
    const [removed, ...granted] = await race([
      () => removeActor({ actor_id }, operator),
      ...Array.from({ length: 4 }, () => () => {
        return grantRole({ actor_id, role: 'admin', path: 'admin' }, operator)
      }),
    ])
    only([removed as string], ['ok', 'cannot_delete_last_admin'])
    only(granted, ['ok', 'actor_not_found'])
    const grants = await rows(world, sql`select from role_grant where actor_id = ${actor_id}::uuid`)
    assert.equal(grants.length, ok(granted) > 0 ? 1 : 0, 'parallel calls make one grant')
    // The only admin stays; an account that is removed first gets no role.
    assert.equal(removed === 'ok', grants.length === 0)
    return `${ok(granted)} of 4 assigned, removal ${removed}`
  },
}

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from '../../src/db/db.ts'
import { createPostgresLimiter } from '../../src/limits/postgres-limiter.ts'
import { type TestService, testService } from '../../src/testing/index.ts'
import { admin, call, credentials, login, only, operator, type Race, race, rows } from './race-tools.ts'

const password = 'a long password'
const signup = (world: TestService, username: string, email?: string) => () =>
  world.client().account.signup({ username, password, ...(email && { email }) })
const winners = (outcomes: readonly string[]): number => outcomes.filter((one) => one === 'ok').length
const accounts = async (world: TestService): Promise<number> =>
  (await rows(world, sql`select from account`)).length

/** Races of people who join and sign in. */
export const joiningRaces: Record<string, Race> = {
  'sessions are opened beyond the cap': async (world) => {
    const ada = await world.account()
    const outcomes = await race(Array.from({ length: 12 }, () => login(world, ada)))
    only(outcomes, ['ok'])
    const { sessions } = await credentials(world, ada)
    assert.equal(sessions, world.service.app.config.max_sessions)
    return `${sessions} left`
  },

  'the password is changed twice': async (world) => {
    const ada = await world.account()
    const change = (new_password: string) => () =>
      ada.client.account.password({ current_password: ada.password, new_password })
    const outcomes = await race([change('one new password'), change('another password')])
    assert.equal(winners(outcomes), 1, outcomes.join())
    // If the session is already gone, the caller is anonymous.
    only(outcomes, ['ok', 'invalid_credentials', 'authentication_required'])
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    return outcomes.join(' / ')
  },

  'one invite is claimed by three names': async (world) => {
    await world.service.operations.createInvite({ email: 'new@x.io' }, operator)
    const outcomes = await race(['one', 'two', 'three'].map((name) => signup(world, name, 'new@x.io')))
    only(outcomes, ['ok', 'no_matching_invite'])
    assert.deepEqual([winners(outcomes), await accounts(world)], [1, 1])
    return outcomes.join(' / ')
  },

  'one invite is claimed three times by its name': async (world) => {
    await world.service.operations.createInvite({ username: 'newcomer' }, operator)
    const outcomes = await race(Array.from({ length: 3 }, () => signup(world, 'newcomer')))
    only(outcomes, ['ok', 'no_matching_invite', 'signup_conflict'])
    assert.deepEqual([winners(outcomes), await accounts(world)], [1, 1])
    return outcomes.join(' / ')
  },

  'an invite is deleted while it is claimed': async (world) => {
    const ada = await admin(world)
    const { id: invite_id } = await world.service.operations.createInvite({ username: 'newcomer' }, operator)
    const outcomes = await race([call(world, ada, 'invite_delete', { invite_id }), signup(world, 'newcomer')])
    only([outcomes.join(' / ')], ['ok / no_matching_invite', 'invite_not_found / ok'])
    assert.equal(await accounts(world), outcomes[1] === 'ok' ? 2 : 1)
    return outcomes.join(' / ')
  },

  'one invite is made five times': async (world) => {
    const ada = await admin(world)
    const outcomes = await race(
      Array.from({ length: 5 }, () => call(world, ada, 'invite_create', { email: 'New@x.io' })),
    )
    only(outcomes, ['ok', 'invite_duplicate'])
    assert.equal(winners(outcomes), 1)
    return 'one is made'
  },

  'open signups want one name and one e-mail': async (world) => {
    await world.service.operations.setSettings({ open_signup: true }, operator)
    const outcomes = await race([
      signup(world, 'newcomer', 'one@x.io'),
      signup(world, 'newcomer', 'two@x.io'),
      signup(world, 'another', 'one@x.io'),
    ])
    only(outcomes, ['ok', 'signup_conflict'])
    assert.equal(await accounts(world), winners(outcomes))
    assert.ok(winners(outcomes) === 1 || winners(outcomes) === 2, outcomes.join())
    return outcomes.join(' / ')
  },

  'a bootstrap token is used by six on two nodes': async () => {
    const first = await freshService()
    const { world, token } = first
    const other = await testService({ ...first.options, database_url: world.databaseUrl })
    try {
      const outcomes = await race(
        Array.from({ length: 6 }, (_, i) => () => {
          const on = i % 2 === 0 ? world : other
          return on.client().account.bootstrap({ token, username: `root${i}`, password })
        }),
      )
      only(outcomes, ['ok', 'already_bootstrapped'])
      assert.deepEqual([winners(outcomes), await accounts(world)], [1, 1])
      return 'one keeper'
    } finally {
      await other.close()
      await first.close()
    }
  },

  'a budget shared by two nodes is spent at once': async (world) => {
    const { db, log } = world.service.app
    const key = randomUUID()
    const node = () => createPostgresLimiter({ db, log, name: 'race', max: 5, windowMs: 900_000 })
    const nodes = [node(), node()] as const
    let admitted = 0
    await race(
      Array.from({ length: 16 }, (_, i) => async () => {
        const on = nodes[i % 2] as (typeof nodes)[0]
        if (i % 4 < 2) {
          const held = await on.hold(key)
          if (!held.ok) return
          await held.charge()
        } else if (!(await on.charge(key)).ok) return
        admitted++
      }),
    )
    assert.equal(admitted, 5, 'exactly the budget is admitted')
    return 'five of 16'
  },
}

/** A service whose bootstrap is still open, with its own database and token file. */
export async function freshService() {
  const dir = await mkdtemp(join(tmpdir(), 'ck-race-'))
  const path = join(dir, 'bootstrap_token')
  const options = { bootstrap: 'live', bootstrap_token_path: path, limit_bootstrap_ip: 'off' } as const
  const world = await testService(options)
  const token = (await readFile(path, 'utf8')).trim()
  const close = async (): Promise<void> => {
    await world.close()
    await rm(dir, { recursive: true })
  }
  return { world, options, token, close }
}

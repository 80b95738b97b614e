import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { purge, revoke } from './grant-race-cast.ts'
import { active, by, type Came, type Contender, type GrantRace, oneOf, oneWins } from './grant-race-tools.ts'
import { holder } from './offers.ts'
import { adminCount } from './race-tools.ts'

/** Races of grants that are made and ended without an offer. */

const missing = 'role_grant_not_found'
const admin = (world: TestService) => holder(world, 'admin')
const set = (world: TestService, account: TestAccount, enabled: boolean): Contender =>
  by(world, account, 'self_service_role_set', { role: 'guide', enabled })
const assign = (world: TestService, from: TestAccount, to: TestAccount, more: object = {}): Contender =>
  by(world, from, 'role_grant_assign', { to_account_id: to.id, role: 'teacher', ...more })
/** A revoke over HTTP by an admin. */
const revokeBy = (
  world: TestService,
  from: TestAccount,
  { actor_id, role_grant_id }: { actor_id: string; role_grant_id: string },
): Contender => by(world, from, 'role_grant_revoke', { actor_id, role_grant_id })

const changed = (came: Came[]) => came.map(({ answer }) => answer.changed)

type Admin = Awaited<ReturnType<typeof admin>>

/** Each call would end one of the only two admins, so exactly one succeeds. */
const twoAdmins =
  (contend: (world: TestService, ada: Admin, bob: Admin) => Contender[]): GrantRace =>
  async (world) => ({
    contenders: contend(world, await admin(world), await admin(world)),
    judge: async (came) => {
      const what = came.map(({ reason }) => reason)
      assert.equal(what.filter((reason) => reason === 'ok').length, 1, `exactly one succeeds: ${what}`)
      const refusals = [
        'cannot_revoke_last_admin',
        'cannot_delete_last_admin',
        // The other call committed before this caller was read.
        'insufficient_permissions',
        'authentication_required',
      ]
      for (const reason of what) assert.ok(reason === 'ok' || refusals.includes(reason), reason)
      assert.equal(await adminCount(world), 1)
      return what.join(' / ')
    },
  })

const setTwice =
  (enabled: boolean): GrantRace =>
  async (world) => {
    const ada = enabled ? await world.account() : await holder(world, 'guide')
    return {
      contenders: [set(world, ada, enabled), set(world, ada, enabled)],
      judge: (came) => {
        assert.deepEqual(changed(came).sort(), [false, true])
        return oneOf(came, 'ok / ok')
      },
    }
  }

export const grantChangeRaces: Record<string, GrantRace> = {
  'R23 revoke × revoke of one grant': async (world) => {
    const [ada, root] = [await holder(world), await admin(world)]
    const contender = revokeBy(world, root, ada)
    return { contenders: [contender, contender, revoke(world, ada)], judge: (came) => oneWins(came, missing) }
  },

  'R24 revoke × assign': async (world) => {
    const [ada, root] = [await holder(world), await admin(world)]
    return {
      contenders: [revokeBy(world, root, ada), assign(world, root, ada)],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const { created, role_grant_id } = (came[1] as Came).answer as {
          created: boolean
          role_grant_id: string
        }
        assert.equal(role_grant_id === ada.role_grant_id, !created)
        assert.deepEqual(await active(world, ada.actor_id), created ? [role_grant_id] : [])
        return created ? 'revoked, then made' : 'found, then revoked'
      },
    }
  },

  'R24 revoke × enable': async (world) => {
    const [ada, root] = [await holder(world, 'guide'), await admin(world)]
    return {
      contenders: [revokeBy(world, root, ada), set(world, ada, true)],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const made = came[1]?.answer.changed === true
        assert.equal((await active(world, ada.actor_id, 'guide')).length, made ? 1 : 0)
        return made ? 'revoked, then made' : 'found, then revoked'
      },
    }
  },

  'R25 revoke × self-service disable': async (world) => {
    const [ada, root] = [await holder(world, 'guide'), await admin(world)]
    return {
      contenders: [revokeBy(world, root, ada), set(world, ada, false)],
      judge: (came) => {
        const what = oneOf(came, 'ok / ok', `${missing} / ok`)
        assert.equal(came[1]?.answer.changed, came[0]?.reason === missing)
        return what
      },
    }
  },

  'R26 revoke × account_delete and undelete of the subject': async (world) => {
    const [ada, root] = [await holder(world), await admin(world)]
    const of = { account_id: ada.id }
    if (Math.random() < 0.5) await world.service.operations.deleteAccount(of, { via: 'race' })
    return {
      contenders: [
        revokeBy(world, root, ada),
        by(world, root, 'account_delete', of),
        by(world, root, 'account_undelete', of),
      ],
      judge: async (came) => {
        const no = 'account_not_found'
        const what = oneOf(came, 'ok / ok / ok', `ok / ${no} / ok`, `ok / ok / ${no}`)
        assert.deepEqual(await active(world, ada.actor_id), [])
        return what
      },
    }
  },

  'R27 revoke × account_purge of the subject': async (world) => {
    const [ada, root] = [await holder(world), await admin(world)]
    return {
      contenders: [revokeBy(world, root, ada), purge(world, ada)],
      judge: (came) => oneOf(came, 'ok / ok', `${missing} / ok`),
    }
  },

  'R28 assign × assign': async (world) => {
    const [ada, root] = [await world.account(), await admin(world)]
    const ends = ['2998-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z']
    return {
      contenders: ends.map((expires_at) => assign(world, root, ada, { expires_at })),
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        assert.equal(new Set(came.map(({ answer }) => answer.role_grant_id)).size, 1)
        assert.deepEqual(came.map(({ answer }) => answer.created).sort(), [false, true])
        const stored = await world.service.app.db.rows(sql`
          select expires_at from role_grant where actor_id = ${ada.actor_id}::uuid`)
        assert.deepEqual(stored, [{ expires_at: ends[1] }])
        return came[0]?.answer.created ? 'the earlier end came first' : 'the later end came first'
      },
    }
  },

  'R29 assign × account_delete of the target': async (world) => {
    const [ada, root] = [await world.account(), await admin(world)]
    return {
      contenders: [assign(world, root, ada), by(world, ada, 'account_delete')],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', 'account_not_found / ok')
        assert.equal((await active(world, ada.actor_id)).length, came[0]?.reason === 'ok' ? 1 : 0)
        return what
      },
    }
  },

  'R30 enable × enable': setTwice(true),
  'R30 disable × disable': setTwice(false),

  'R31 enable × disable': async (world) => {
    const held = Math.random() < 0.5
    const ada = held ? await holder(world, 'guide') : await world.account()
    return {
      contenders: [set(world, ada, true), set(world, ada, false)],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const [enabled, disabled] = changed(came)
        const left = (await active(world, ada.actor_id, 'guide')).length
        // A serial result: the initial number, plus or minus one for each call that changed something.
        assert.equal(left, (held ? 1 : 0) + (enabled ? 1 : 0) - (disabled ? 1 : 0))
        assert.ok(enabled || disabled)
        return `${held ? 'held' : 'not held'}: enable ${enabled}, disable ${disabled}`
      },
    }
  },

  'R32 two last admins revoke each other': twoAdmins((world, ada, bob) => [
    revokeBy(world, ada, bob),
    revokeBy(world, bob, ada),
  ]),
  'R32 two last admins: revoke × delete': twoAdmins((world, ada, bob) => [
    revokeBy(world, ada, bob),
    by(world, bob, 'account_delete', { account_id: ada.id }),
  ]),
  'R32 two last admins: revoke × purge': twoAdmins((world, ada, bob) => [
    revokeBy(world, ada, ada),
    purge(world, bob),
  ]),

  'R33 an admin’s assign × revoke of its own grant': async (world) => {
    const [ada, root, eve] = [await admin(world), await admin(world), await world.account()]
    return {
      contenders: [assign(world, ada, eve), revokeBy(world, root, ada)],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', 'insufficient_permissions / ok')
        assert.equal((await active(world, eve.actor_id)).length, came[0]?.reason === 'ok' ? 1 : 0)
        return what
      },
    }
  },
}

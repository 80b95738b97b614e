import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { acceptWhileGrantorEnds, destroy, offered, offerTo, purge, revoke } from './grant-race-cast.ts'
import { acceptedOr, active, by, type GrantRace, offerStates, oneOf, stateOf } from './grant-race-tools.ts'
import { holder, inRoom, lapse } from './offers.ts'

/** Races in which accounts, scopes and offers end while a call still uses them. */

/** The offer is refreshed before it ends, or a new one is made after it has. */
const createWhileEnding =
  (which: 'decline' | 'retract', end: string): GrantRace =>
  async (world) => {
    const one = await offered(world)
    return {
      contenders: [one.again, one[which]],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const states = await offerStates(world)
        assert.equal(states.find(({ offer_id }) => offer_id === one.offer_id)?.state, end)
        if (states.length === 1) return 'refreshed, then ended'
        assert.deepEqual(states.map(({ state }) => state).sort(), [end, 'pending'].sort())
        return 'ended, then fresh'
      },
    }
  }

export const offerEndingRaces: Record<string, GrantRace> = {
  'R14 accept × account_delete of the recipient': async (world) => {
    const { accept, bob, offer_id } = await offered(world)
    return {
      contenders: [accept, by(world, bob, 'account_delete')],
      judge: async (came) => {
        // If the account is deleted before its own call is read, the caller is anonymous.
        const what = oneOf(came, 'ok / ok', 'account_vanished / ok', 'authentication_required / ok')
        await acceptedOr(world, offer_id, came[0] as { reason: string }, 'pending')
        return what
      },
    }
  },

  'R15 accept × account_delete of the grantor': acceptWhileGrantorEnds((world, { ada }) =>
    by(world, ada, 'account_delete'),
  ),

  'R16 accept × account_purge of the recipient': async (world) => {
    const { accept, bob, offer_id } = await offered(world)
    return {
      contenders: [accept, purge(world, bob)],
      judge: async (came) => {
        const gone = ['account_vanished', 'authentication_required', 'role_grant_offer_not_found']
        const what = oneOf(came, 'ok / ok', ...gone.map((reason) => `${reason} / ok`))
        assert.equal(await stateOf(world, offer_id), undefined)
        return what
      },
    }
  },

  'R16 accept × account_purge of the grantor': acceptWhileGrantorEnds((world, { ada }) => purge(world, ada)),

  'R17 create × create of one key': async (world) => {
    const [ada, bob] = [await holder(world), await world.account()]
    const create = (message: string) =>
      by(world, ada, 'role_grant_offer_create', { to_account_id: bob.id, role: 'teacher', message })
    return {
      contenders: [create('a'), create('b')],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const made = came.map(({ answer }) => answer.offer as { offer_id: string })
        assert.equal(made[0]?.offer_id, made[1]?.offer_id)
        const states = await offerStates(world)
        assert.deepEqual(
          states.map(({ state }) => state),
          ['pending'],
        )
        return `${states[0]?.message} came later`
      },
    }
  },

  'R18 create × decline of the same key': createWhileEnding('decline', 'declined'),
  'R18 create × retract of the same key': createWhileEnding('retract', 'retracted'),

  'R19 create × sweep of the lapsed row of its key': async (world) => {
    const { again, offer_id } = await offered(world)
    await lapse(world, offer_id)
    return {
      contenders: [again, () => world.service.operations.cleanUp()],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        assert.deepEqual((await offerStates(world)).map(({ state }) => state).sort(), ['expired', 'pending'])
        return came[1]?.answer.expired_offers === 1 ? 'swept' : 'made room itself'
      },
    }
  },

  'R20 create × revoke of the grantor’s grant': async (world) => {
    const [ada, bob] = [await holder(world), await world.account()]
    return {
      contenders: [
        by(world, ada, 'role_grant_offer_create', { to_account_id: bob.id, role: 'teacher' }),
        revoke(world, ada),
      ],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', 'role_grant_offer_not_authorized / ok')
        const left = came[0]?.reason === 'ok' ? ['superseded'] : []
        assert.deepEqual(
          (await offerStates(world)).map(({ state }) => state),
          left,
        )
        return what
      },
    }
  },

  'R21 create × account_delete of the recipient': async (world) => {
    const [ada, bob] = [await holder(world), await world.account()]
    return {
      contenders: [
        by(world, ada, 'role_grant_offer_create', { to_account_id: bob.id, role: 'teacher' }),
        by(world, bob, 'account_delete'),
      ],
      judge: (came) => oneOf(came, 'ok / ok', 'account_not_found / ok'),
    }
  },

  'R22 create and assign × destroyScope': async (world) => {
    const [ada, bob, admin] = [
      await holder(world),
      await world.account(),
      await world.account({ roles: ['admin'] }),
    ]
    const params = { to_account_id: bob.id, role: 'teacher', ...inRoom }
    return {
      contenders: [
        by(world, ada, 'role_grant_offer_create', params),
        by(world, admin, 'role_grant_assign', params),
        destroy(world),
      ],
      judge: async (came) => {
        const gone = 'role_grant_scope_destroyed'
        const what = oneOf(
          came,
          'ok / ok / ok',
          `${gone} / ok / ok`,
          `ok / ${gone} / ok`,
          `${gone} / ${gone} / ok`,
        )
        assert.deepEqual(await active(world, bob.actor_id), [])
        assert.ok((await offerStates(world)).every(({ state }) => state === 'superseded'))
        return what
      },
    }
  },

  'R34 destroyScope × destroyScope': async (world) => {
    const held = [await holder(world, 'teacher', inRoom), await holder(world, 'local', inRoom)]
    await offerTo(world, await holder(world), await world.account(), inRoom)
    return {
      contenders: [destroy(world), destroy(world)],
      judge: (came) => {
        const what = oneOf(came, 'ok / ok')
        const lengths = (key: string) => came.map(({ answer }) => (answer[key] as unknown[]).length).sort()
        assert.deepEqual(
          [lengths('revoked'), lengths('superseded_offers')],
          [
            [0, held.length],
            [0, 1],
          ],
        )
        return what
      },
    }
  },

  'R35 sweep × sweep': async (world) => {
    for (let i = 0; i < 3; i++) await lapse(world, (await offered(world)).offer_id)
    const { cleanUp } = world.service.operations
    return {
      contenders: [() => cleanUp(), () => cleanUp()],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        assert.equal(
          came.reduce((sum, { answer }) => sum + (answer.expired_offers as number), 0),
          3,
        )
        return `${came.filter(({ answer }) => answer.ran).length} ran`
      },
    }
  },

  'purge of the recipient × revoke of two grantors of many offers': async (world) => {
    const [bob, ada, eve] = [await world.account(), await holder(world), await holder(world)]
    for (const from of [ada, eve, ada, eve])
      await offerTo(world, from, bob, { scope_kind: 'team', scope_id: randomUUID() })
    return {
      contenders: [purge(world, bob), revoke(world, ada), revoke(world, eve)],
      judge: (came) => oneOf(came, 'ok / ok / ok'),
    }
  },
}

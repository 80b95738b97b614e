import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import { acceptWhileGrantorEnds, destroy, offered, offerTo, revoke } from './grant-race-cast.ts'
import {
  acceptedOr,
  active,
  by,
  type Contender,
  type GrantRace,
  offerStates,
  oneOf,
  oneWins,
  operator,
  stateOf,
} from './grant-race-tools.ts'
import { holder, inRoom } from './offers.ts'

/** Races in which an offer is accepted. */

const terminal = 'role_grant_offer_terminal'

const twice =
  (which: 'decline' | 'retract'): GrantRace =>
  async (world) => {
    const one = await offered(world)
    return { contenders: [one[which], one[which]], judge: (came) => oneWins(came, terminal) }
  }
const oneAnswer =
  (a: 'accept' | 'decline', b: 'decline' | 'retract'): GrantRace =>
  async (world) => {
    const one = await offered(world)
    return { contenders: [one[a], one[b]], judge: (came) => oneWins(came, terminal) }
  }

export const acceptRaces: Record<string, GrantRace> = {
  'R1 accept × accept of one actor': async (world) => {
    const { bob, accept } = await offered(world)
    const held = Math.random() < 0.3
    if (held) await world.roleGrant({ actor_id: bob.actor_id, role: 'teacher' })
    return {
      contenders: [accept, accept],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok')
        assert.deepEqual(
          came.map(({ answer }) => answer.created).sort(),
          held ? [false, false] : [false, true],
        )
        assert.deepEqual(
          [...new Set(came.map(({ answer }) => answer.role_grant_id))],
          await active(world, bob.actor_id),
        )
        return `${what}, ${held ? 'held before' : 'made'}`
      },
    }
  },

  'R2 accept × accept of two actors': async (world) => {
    const { bob, offer_id } = await offered(world)
    const second = await world.actor(bob.id, 'second')
    return {
      contenders: [bob.actor_id, second].map((acting) =>
        by(world, bob, 'role_grant_offer_accept', { offer_id, acting }),
      ),
      judge: async (came) => {
        const what = oneWins(came, terminal)
        const grants = [...(await active(world, bob.actor_id)), ...(await active(world, second))]
        assert.equal(grants.length, 1)
        return what
      },
    }
  },

  'R3 accept × accept of siblings': async (world) => {
    const [one, eve] = [await offered(world), await holder(world)]
    const other = await offerTo(world, eve, one.bob)
    return {
      contenders: [one.accept, other.accept],
      judge: async (came) => {
        const what = oneWins(came, terminal)
        const [won, lost] = came[0]?.reason === 'ok' ? [0, 1] : [1, 0]
        const ids = [one.offer_id, other.offer_id]
        assert.deepEqual(came[won as number]?.answer.superseded_offer_ids, [ids[lost as number]])
        return what
      },
    }
  },

  'R4 accept × decline': oneAnswer('accept', 'decline'),
  'R4 accept × retract': oneAnswer('accept', 'retract'),
  'R4 decline × retract': oneAnswer('decline', 'retract'),
  'R5 decline × decline': twice('decline'),
  'R5 retract × retract': twice('retract'),

  'R6 accept × re-offer': async (world) => {
    const { accept, again, offer_id } = await offered(world)
    return {
      contenders: [accept, again],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const states = await offerStates(world)
        const first = states.find((offer) => offer.offer_id === offer_id)
        assert.equal(first?.state, 'accepted')
        if (states.length === 1) assert.equal(first?.message, 'again')
        else assert.deepEqual(states.map(({ state }) => state).sort(), ['accepted', 'pending'])
        return states.length === 1 ? 'refreshed, then accepted' : 'accepted, then fresh'
      },
    }
  },

  'R7 accept × accept of different tuples': async (world) => {
    const [one, eve] = [await offered(world), await holder(world, 'plain')]
    const other = await offerTo(world, eve, one.bob, { role: 'plain' })
    return { contenders: [one.accept, other.accept], judge: (came) => oneOf(came, 'ok / ok') }
  },

  'R8 accept × assign and grantRole': async (world) => {
    const [{ accept, bob }, admin] = [await offered(world), await world.account({ roles: ['admin'] })]
    const assign = by(world, admin, 'role_grant_assign', { to_account_id: bob.id, role: 'teacher' })
    const grant = { actor_id: bob.actor_id, role: 'teacher', path: 'system' }
    return {
      contenders: [accept, assign, () => world.service.operations.grantRole(grant, operator)],
      judge: async (came) => {
        oneOf(came, 'ok / ok / ok')
        assert.deepEqual(came.map(({ answer }) => answer.created).sort(), [false, false, true])
        assert.equal((await active(world, bob.actor_id)).length, 1)
        return came.map(({ answer }) => (answer.created ? 'made' : 'found')).join(' / ')
      },
    }
  },

  'R9 accept × self-service enable': async (world) => {
    const { accept, bob } = await offered(world, { role: 'guide' })
    return {
      contenders: [accept, by(world, bob, 'self_service_role_set', { role: 'guide', enabled: true })],
      judge: async (came) => {
        oneOf(came, 'ok / ok')
        const [accepted, enabled] = came
        assert.notEqual(accepted?.answer.created, enabled?.answer.changed)
        assert.equal((await active(world, bob.actor_id, 'guide')).length, 1)
        return accepted?.answer.created ? 'accept made it' : 'enable made it'
      },
    }
  },

  'R9 accept × self-service disable': async (world) => {
    const { accept, bob } = await offered(world, { role: 'guide' })
    const held = Math.random() < 0.5
    if (held) await world.roleGrant({ actor_id: bob.actor_id, role: 'guide' })
    return {
      contenders: [accept, by(world, bob, 'self_service_role_set', { role: 'guide', enabled: false })],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', ...(held ? [`${terminal} / ok`] : []))
        const changed = came[1]?.answer.changed === true
        if (held) assert.ok(changed)
        assert.equal((await active(world, bob.actor_id, 'guide')).length, changed ? 0 : 1)
        return `${what}, ${held ? 'held' : 'not held'}, ${changed ? 'changed' : 'unchanged'}`
      },
    }
  },

  'R10 accept × revoke of the recipient’s grant': async (world) => {
    const { accept, bob, offer_id } = await offered(world)
    const { role_grant_id } = await world.roleGrant({ actor_id: bob.actor_id, role: 'teacher' })
    return {
      contenders: [accept, revoke(world, { ...bob, role_grant_id })],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', `${terminal} / ok`)
        await acceptedOr(world, offer_id, came[0] as { reason: string }, 'superseded')
        assert.deepEqual(await active(world, bob.actor_id), [])
        return what
      },
    }
  },

  'R11 accept × revoke of the grantor’s grant': acceptWhileGrantorEnds((world, { ada }) =>
    revoke(world, ada),
  ),

  'R12 accept × sweep at the end of the offer': async (world) => {
    const { accept, offer_id } = await offered(world)
    const { cleanUp } = world.service.operations
    await world.service.app.db.run(sql`
      update role_grant_offer set expires_at = clock_timestamp() + ${`${Math.random() * 12} ms`}::interval
      where offer_id = ${offer_id}::uuid`)
    return {
      contenders: [accept, () => cleanUp()],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', 'role_grant_offer_expired / ok')
        await cleanUp()
        await acceptedOr(world, offer_id, came[0] as { reason: string }, 'expired')
        return what
      },
    }
  },

  'R13 accept × destroyScope': async (world) => {
    const { accept, bob, offer_id } = await offered(world, {}, inRoom)
    return {
      contenders: [accept, destroy(world)],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', `${terminal} / ok`)
        await acceptedOr(world, offer_id, came[0] as { reason: string }, 'superseded')
        assert.deepEqual(await active(world, bob.actor_id), [])
        return what
      },
    }
  },

  'R36 sibling accept × revoke × destroyScope': async (world) => {
    const [one, eve] = [await offered(world, {}, inRoom), await holder(world)]
    const other = await offerTo(world, eve, one.bob, inRoom)
    return {
      contenders: [one.accept, revoke(world, eve), destroy(world)],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok / ok', `${terminal} / ok / ok`)
        assert.equal(await stateOf(world, other.offer_id), 'superseded')
        assert.deepEqual(await active(world, one.bob.actor_id), [])
        return what
      },
    }
  },

  'two revokes of a grantor × three accepts of its offers': async (world) => {
    const ada = await holder(world)
    const { role_grant_id } = await world.roleGrant({ actor_id: ada.actor_id, role: 'teacher', ...inRoom })
    const accepts: Contender[] = []
    for (let i = 0; i < 3; i++)
      accepts.push((await offerTo(world, ada, await world.account(), inRoom)).accept)
    return {
      contenders: [revoke(world, ada), revoke(world, { ...ada, role_grant_id }), ...accepts],
      judge: async (came) => {
        for (const { reason } of came.slice(0, 2)) assert.equal(reason, 'ok')
        for (const { reason } of came.slice(2)) assert.ok(['ok', terminal].includes(reason), reason)
        assert.ok((await offerStates(world)).every(({ state }) => state !== 'pending'))
        return `${came.slice(2).filter(({ reason }) => reason === 'ok').length} accepted`
      },
    }
  },

  'twenty accepts of one tuple × revoke of it': async (world) => {
    const bob = await world.account()
    const { role_grant_id } = await world.roleGrant({ actor_id: bob.actor_id, role: 'teacher' })
    const accepts: Contender[] = []
    for (let i = 0; i < 4; i++) {
      const { accept } = await offerTo(world, await holder(world), bob)
      accepts.push(...Array<Contender>(5).fill(accept))
    }
    return {
      contenders: [revoke(world, { ...bob, role_grant_id }), ...accepts],
      judge: async (came) => {
        assert.equal(came[0]?.reason, 'ok')
        for (const { reason } of came.slice(1)) assert.ok(['ok', terminal].includes(reason), reason)
        assert.deepEqual(await active(world, bob.actor_id), [])
        return `${came.slice(1).filter(({ reason }) => reason === 'ok').length} accepted before`
      },
    }
  },
}

import assert from 'node:assert/strict'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import {
  acceptedOr,
  active,
  by,
  type Contender,
  type GrantRace,
  oneOf,
  operator,
} from './grant-race-tools.ts'
import { holder, inRoom } from './offers.ts'

/** The participants of role grant races, and what they hold. */

type Holder = TestAccount & { role_grant_id: string }

/** Ada holds a role and has offered it to bob; `more` is added to the offer. */
export async function offered(
  world: TestService,
  more: { role?: string; to_actor_id?: string } = {},
  scope = {},
) {
  const ada = await holder(world, more.role ?? 'teacher', scope)
  const bob = await world.account()
  return { ada, bob, ...(await offerTo(world, ada, bob, { ...more, ...scope })) }
}
export async function offerTo(world: TestService, ada: TestAccount, bob: TestAccount, more: object = {}) {
  const params = { to_account_id: bob.id, role: 'teacher', ...more }
  const { offer } = await ada.client.role_grant_offer_create(params)
  const { offer_id } = offer
  return {
    offer_id,
    accept: by(world, bob, 'role_grant_offer_accept', { offer_id }),
    decline: by(world, bob, 'role_grant_offer_decline', { offer_id }),
    retract: by(world, ada, 'role_grant_offer_retract', { offer_id }),
    again: by(world, ada, 'role_grant_offer_create', { ...params, message: 'again' }),
  }
}
export const revoke =
  (
    { service }: TestService,
    { actor_id, role_grant_id }: Pick<Holder, 'actor_id' | 'role_grant_id'>,
  ): Contender =>
  () =>
    service.operations.revokeRole({ actor_id, role_grant_id }, operator)
export const destroy =
  ({ service }: TestService): Contender =>
  () =>
    service.operations.destroyScope(inRoom, operator)
export const purge =
  ({ service }: TestService, { id }: TestAccount): Contender =>
  () =>
    service.operations.purgeAccount({ account_id: id, confirm: true }, operator)

/** The offer is accepted first, and bob holds its role, or it is superseded and he does not. */
export const acceptWhileGrantorEnds =
  (end: (world: TestService, one: Awaited<ReturnType<typeof offered>>) => Contender): GrantRace =>
  async (world) => {
    const one = await offered(world)
    return {
      contenders: [one.accept, end(world, one)],
      judge: async (came) => {
        const what = oneOf(came, 'ok / ok', 'role_grant_offer_terminal / ok')
        await acceptedOr(world, one.offer_id, came[0] as { reason: string }, 'superseded')
        assert.equal((await active(world, one.bob.actor_id)).length, came[0]?.reason === 'ok' ? 1 : 0)
        return what
      },
    }
  }

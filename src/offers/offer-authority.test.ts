import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expire, grantsOf, heard, holder, inRoom, registries, room } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { AuthorizeOffer, OfferQuestion } from '../registry/hooks.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))

async function offered(more: object = {}) {
  const [ada, bob] = [await holder(test), await test.account()]
  const { offer } = await ada.client.role_grant_offer_create({
    to_account_id: bob.id,
    role: 'teacher',
    ...more,
  })
  return { ada, bob, offer, accept: () => bob.client.role_grant_offer_accept({ offer_id: offer.offer_id }) }
}
type Offered = Awaited<ReturnType<typeof offered>>
const stateOf = async ({ bob, offer }: Offered) =>
  (await bob.client.role_grant_offer_history()).offers.find(({ offer_id }) => offer_id === offer.offer_id)

describe('an offer whose grantor lost the authority', () => {
  it.each<[string, (one: Offered) => Promise<unknown>]>([
    ['by expiry', ({ ada }) => expire(test, ada.role_grant_id)],
    ['with the actor', ({ ada }) => run`update actor set deleted_at = now() where id = ${ada.actor_id}`],
    ['with the account', ({ ada }) => ada.client.account_delete()],
    [
      'as the role is no longer registered',
      ({ offer }) => run`update role_grant_offer set role = 'gone' where offer_id = ${offer.offer_id}`,
    ],
    [
      'as the role has no path admin any more',
      async ({ ada, offer }) => {
        await test.roleGrant({ actor_id: ada.actor_id, role: 'inner' })
        await run`update role_grant_offer set role = 'inner' where offer_id = ${offer.offer_id}`
      },
    ],
    [
      'as the scope kind is no longer registered',
      ({ offer }) =>
        run`update role_grant_offer set scope_kind = 'gone', scope_id = ${room}::uuid where offer_id = ${offer.offer_id}`,
    ],
    [
      'as the role cannot be held in such a scope any more',
      async ({ ada, offer }) => {
        await run`update role_grant set role = 'local' where id = ${ada.role_grant_id}`
        await run`update role_grant_offer set role = 'local', scope_kind = 'team', scope_id = ${room}::uuid
          where offer_id = ${offer.offer_id}`
      },
    ],
  ])('%s is superseded by the accept that it refuses', async (_how, lose) => {
    const one = await offered()
    await lose(one)
    const sent = await heard(test, () =>
      scenario(test, one.accept, {
        reason: 'role_grant_offer_terminal',
        audit: [
          {
            event_type: 'role_grant_offer_supersede',
            actor_id: one.bob.actor_id,
            account_id: one.bob.id,
            target_account_id: one.bob.id,
            target_actor_id: null,
          },
        ],
        notify: [{ account_id: one.ada.id, method: 'role_grant_offer_supersede' }],
      }),
    )
    expect(sent[0]?.params).toMatchObject({ reason: 'grantor_lost_authority', cause_id: null })
    expect(await stateOf(one)).toMatchObject({ superseded_at: expect.any(String), accepted_at: null })
    expect(await grantsOf(test, one.bob.actor_id)).toEqual([])
    await scenario(test, one.accept, { reason: 'role_grant_offer_terminal' })
  })

  it('stands while one of two grants that authorise it is left', async () => {
    const one = await offered(inRoom)
    await test.roleGrant({ actor_id: one.ada.actor_id, role: 'teacher', ...inRoom })
    await expire(test, one.ada.role_grant_id)
    expect(await one.accept()).toMatchObject({ created: true, offer: { scope_id: room } })
  })
})

describe('a consumer’s authorize_offer', () => {
  let own: TestService
  let asked: OfferQuestion[] = []
  let answer: (question: OfferQuestion) => unknown = () => true
  const authorize_offer = ((question) => {
    asked.push(question)
    return answer(question)
  }) as AuthorizeOffer
  let ada: TestAccount
  let bob: TestAccount
  beforeAll(async () => {
    own = await testService({
      ...registries,
      limit_role_write: 'off',
      authorize_offer,
    })
  })
  afterAll(() => own.close())
  beforeEach(async () => {
    asked = []
    answer = () => true
    ada = await own.account()
    bob = await own.account()
  })
  const create = (more: object = {}) =>
    ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...more })
  const failure = (event_type: string) => ({ event_type, outcome: 'failure' as const })

  it('is asked with all there is to know, when the offer is made and when it is accepted', async () => {
    const held = await own.roleGrant({ actor_id: ada.actor_id, role: 'plain' })
    const grant_expires_at = '2999-01-01T00:00:00.000Z'
    const { offer } = await create({ ...inRoom, to_actor_id: bob.actor_id, message: 'Hi', grant_expires_at })
    const question = {
      phase: 'create',
      grantor: {
        actor_id: ada.actor_id,
        account_id: ada.id,
        role_grants: [expect.objectContaining({ id: held.role_grant_id, role: 'plain', scope_id: null })],
      },
      to_account_id: bob.id,
      to_actor_id: bob.actor_id,
      role: 'teacher',
      ...inRoom,
      message: 'Hi',
      grant_expires_at,
    }
    expect(asked).toEqual([question])
    await own.service.operations.revokeRole(
      { actor_id: ada.actor_id, role_grant_id: held.role_grant_id },
      { via: 'cli' },
    )
    await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    expect(asked[1]).toEqual({
      ...question,
      phase: 'accept',
      grantor: { ...question.grantor, role_grants: [] },
    })
  })

  it.each([[false], [undefined], [null], [1], ['true'], [{}], [Promise.resolve(false)]])(
    'that answers %j refuses',
    async (given) => {
      answer = () => given
      await scenario(own, () => create(), {
        reason: 'role_grant_offer_not_authorized',
        audit: [failure('role_grant_offer_create')],
      })
    },
  )

  it('replaces the rule of the holders, but not that of the path admin', async () => {
    answer = async () => true
    expect((await create()).offer.role).toBe('teacher')
    asked = []
    await scenario(own, () => create({ role: 'inner' }), {
      reason: 'role_grant_offer_role_not_grantable',
      audit: [failure('role_grant_offer_create')],
    })
    expect(asked).toEqual([])
    await own.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    answer = () => false
    await scenario(own, () => create(), {
      reason: 'role_grant_offer_not_authorized',
      audit: [failure('role_grant_offer_create')],
    })
  })

  it('that refuses the accept supersedes the offer', async () => {
    const { offer } = await create()
    answer = ({ phase }) => phase === 'create'
    await scenario(own, () => bob.client.role_grant_offer_accept({ offer_id: offer.offer_id }), {
      reason: 'role_grant_offer_terminal',
      audit: [{ event_type: 'role_grant_offer_supersede' }],
      notify: [{ account_id: ada.id, method: 'role_grant_offer_supersede' }],
    })
  })

  it('that throws, a refusal of its own too, fails the call and undoes it', async () => {
    const { offer } = await create()
    const accept = () => bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    for (const thrown of [new Error('secret'), Object.assign(new Error('x'), { code: -32002 })]) {
      answer = () => {
        throw thrown
      }
      await scenario(own, () => create({ message: 'other' }), {
        reason: 'internal_error',
        audit: [failure('role_grant_offer_create')],
      })
      await scenario(own, accept, {
        reason: 'internal_error',
        audit: [failure('role_grant_offer_accept')],
      })
    }
    answer = () => true
    expect((await accept()).offer).toMatchObject({ offer_id: offer.offer_id, message: null })
  })

  it('keeps the offers of a grantor whose grant is revoked', async () => {
    const { role_grant_id } = await own.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    const { offer } = await create()
    await own.service.operations.revokeRole({ actor_id: ada.actor_id, role_grant_id }, { via: 'cli' })
    expect((await bob.client.role_grant_offer_list()).offers).toEqual([offer])
  })
})

describe('what expires while a call waits for its locks', () => {
  /** Makes `call` wait for the lock of an account until a row has expired. */
  async function endingMeanwhile<T>(account_id: string, end: ReturnType<typeof sql>, call: () => Promise<T>) {
    const { db } = test.service.app
    let answer: Promise<PromiseSettledResult<T>[]> | undefined
    await db.transaction(async (tx) => {
      await tx.run(sql`select from account where id = ${account_id}::uuid for update`)
      answer = Promise.allSettled([call()])
      const waiting = sql`select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      while (!(await db.first(waiting)));
      await tx.run(end)
    })
    return (await (answer as NonNullable<typeof answer>))[0]
  }

  it('is the grantor’s grant: the offer is not accepted', async () => {
    const { ada, accept } = await offered()
    const end = sql`update role_grant set expires_at = clock_timestamp() - interval '1 ms' where id = ${ada.role_grant_id}::uuid`
    expect(await endingMeanwhile(ada.id, end, accept)).toMatchObject({
      reason: { data: { reason: 'role_grant_offer_terminal' } },
    })
  })

  it('is the offer: it is not accepted', async () => {
    const { bob, offer, accept } = await offered()
    const end = sql`update role_grant_offer set expires_at = clock_timestamp() - interval '1 ms' where offer_id = ${offer.offer_id}::uuid`
    expect(await endingMeanwhile(bob.id, end, accept)).toMatchObject({
      reason: { data: { reason: 'role_grant_offer_expired' } },
    })
  })

  it('is the grant that the role would be conferred over: there is a new one', async () => {
    const one = await offered()
    const { role_grant_id } = await test.roleGrant({ actor_id: one.bob.actor_id, role: 'teacher' })
    const end = sql`update role_grant set expires_at = clock_timestamp() - interval '1 ms' where id = ${role_grant_id}::uuid`
    const answer = await endingMeanwhile(one.bob.id, end, one.accept)
    expect(answer).toMatchObject({ value: { created: true } })
    expect((await grantsOf(test, one.bob.actor_id)).map(({ is_active }) => is_active)).toEqual([false, true])
  })
})

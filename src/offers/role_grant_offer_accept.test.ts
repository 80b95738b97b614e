import { describe, expect, it } from 'vitest'
import {
  expire,
  globally,
  grantsOf,
  heard,
  holder,
  inRoom,
  lapse,
  nobody,
  registries,
} from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

let statements = 0
const onStatement = () => void statements++
const test = await serviceForFile({ ...registries, limit_role_write: 'off', onStatement })

const soon = '2998-01-01T00:00:00.000Z'
const later = '2999-01-01T00:00:00.000Z'
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))

/** An offer from a fresh holder to a fresh account. */
async function offered(more: object = {}, to?: TestAccount) {
  const ada = await holder(test)
  const bob = to ?? (await test.account())
  const { offer } = await ada.client.role_grant_offer_create({
    to_account_id: bob.id,
    role: 'teacher',
    ...more,
  })
  const accept = (acting?: string) =>
    bob.client.role_grant_offer_accept({ offer_id: offer.offer_id, ...(acting && { acting }) })
  return { ada, bob, offer, accept }
}
type Offered = Awaited<ReturnType<typeof offered>>
const stateOf = async ({ bob, offer }: Offered) =>
  (await bob.client.role_grant_offer_history()).offers.find(({ offer_id }) => offer_id === offer.offer_id)

const acceptRow = ({ bob, offer }: Offered, role_grant_id: unknown) => ({
  event_type: 'role_grant_offer_accept',
  actor_id: bob.actor_id,
  account_id: bob.id,
  target_actor_id: bob.actor_id,
  target_account_id: bob.id,
  metadata: { offer_id: offer.offer_id, role: 'teacher', ...globally, role_grant_id },
})
const both = [{ event_type: 'role_grant_offer_accept' }, { event_type: 'role_grant_create' }]

describe('role_grant_offer_accept', () => {
  it('confers the role on the acting actor, with a row each and one notification to the grantor', async () => {
    const one = await offered({ grant_expires_at: later })
    const { ada, bob, offer } = one
    let answer: Awaited<ReturnType<typeof one.accept>> | undefined
    const sent = await heard(test, async () => {
      answer = await scenario(test, one.accept, {
        audit: both,
        notify: [{ account_id: ada.id, method: 'role_grant_offer_accepted' }],
      })
    })
    const { role_grant_id } = answer as NonNullable<typeof answer>
    const accepted = { ...offer, accepted_at: expect.any(String), resulting_role_grant_id: role_grant_id }
    expect(answer).toEqual({ role_grant_id, offer: accepted, superseded_offer_ids: [], created: true })
    expect(sent).toEqual([
      { account_id: ada.id, method: 'role_grant_offer_accepted', params: { offer: accepted } },
    ])
    expect(await grantsOf(test, bob.actor_id)).toMatchObject([
      {
        id: role_grant_id,
        granted_by: ada.actor_id,
        source_offer_id: offer.offer_id,
        expires_at: later,
        is_active: true,
      },
    ])
    const rows = await test.service.app.db.rows(sql`
      select event_type, actor_id, account_id, target_actor_id, target_account_id, metadata
      from audit_entries() order by written desc limit 2`)
    expect(rows.reverse()).toEqual([
      acceptRow(one, role_grant_id),
      {
        ...acceptRow(one, role_grant_id),
        event_type: 'role_grant_create',
        metadata: {
          role: 'teacher',
          role_grant_id,
          ...globally,
          expires_at: later,
          source: 'offer',
          source_offer_id: offer.offer_id,
        },
      },
    ])
    expect(await stateOf(one)).toEqual((answer as { offer: unknown }).offer)
  })

  it.each([
    ['globally', globally],
    ['at a scope', inRoom],
  ])('takes six statements %s: the caller and the audit rows among them', async (_where, scope) => {
    const bob = await test.account()
    for (let i = 0; i < 3; i++) await offered(scope, bob)
    const { accept } = await offered(scope, bob)
    const before = statements
    expect((await accept()).superseded_offer_ids).toHaveLength(3)
    expect(statements - before).toBeLessThanOrEqual(6)
  })

  it('by the same actor again answers the same grant, and does nothing', async () => {
    const one = await offered(inRoom)
    const first = await one.accept()
    expect(await scenario(test, one.accept)).toEqual({ ...first, created: false })
  })

  it('again after the grant was revoked or expired, or by another actor, is terminal', async () => {
    const [revoked, expired, other] = [await offered(), await offered(), await offered()]
    const { role_grant_id } = await revoked.accept()
    await test.service.operations.revokeRole(
      { actor_id: revoked.bob.actor_id, role_grant_id },
      { via: 'cli' },
    )
    await expire(test, (await expired.accept()).role_grant_id)
    await other.accept()
    const second = await test.actor(other.bob.id, 'second')
    for (const again of [revoked.accept, expired.accept, () => other.accept(second)])
      await scenario(test, () => again(), { reason: 'role_grant_offer_terminal' })
  })

  it.each([
    ['the same', later, later, false],
    ['an earlier one', later, soon, false],
    ['a later one', soon, later, true],
    ['none', soon, null, true],
    ['one, where there is none', null, soon, false],
  ])(
    'onto an active grant keeps its id; end of the grant offered: %s',
    async (_what, held, given, extended) => {
      const bob = await test.account()
      const { role_grant_id } = await test.roleGrant({
        actor_id: bob.actor_id,
        role: 'teacher',
        expires_at: held,
      })
      const { accept, ada, offer } = await offered({ grant_expires_at: given }, bob)
      const answer = await scenario(test, accept, {
        audit: extended ? both : both.slice(0, 1),
        notify: [{ account_id: ada.id, method: 'role_grant_offer_accepted' }],
      })
      expect(answer).toMatchObject({
        role_grant_id,
        created: false,
        offer: { offer_id: offer.offer_id, resulting_role_grant_id: role_grant_id },
      })
      expect(await grantsOf(test, bob.actor_id)).toMatchObject([
        { id: role_grant_id, source_offer_id: null, expires_at: extended ? given : held },
      ])
    },
  )

  it('over an expired grant makes a new one', async () => {
    const bob = await holder(test)
    await expire(test, bob.role_grant_id)
    const { accept } = await offered({}, bob)
    const answer = await accept()
    expect(answer).toMatchObject({ created: true })
    expect(answer.role_grant_id).not.toBe(bob.role_grant_id)
    expect((await grantsOf(test, bob.actor_id)).map(({ is_active }) => is_active)).toEqual([false, true])
  })

  it('supersedes its siblings for the actor; each grantor hears of it once', async () => {
    const bob = await test.account()
    const second = await test.actor(bob.id, 'second')
    const siblings: Offered[] = []
    for (let i = 0; i < 4; i++) siblings.push(await offered({}, bob))
    siblings.push(await offered({ to_actor_id: bob.actor_id }, bob))
    const stay = [
      await offered({ to_actor_id: second }, bob),
      await offered(inRoom, bob),
      await offered({}, await test.account()),
    ]
    const lapsed = await offered({}, bob)
    await lapse(test, lapsed.offer.offer_id)
    const one = await offered({}, bob)
    siblings.sort((a, b) => (a.offer.offer_id < b.offer.offer_id ? -1 : 1))
    const ids = siblings.map(({ offer }) => offer.offer_id)
    const sent = await heard(test, () =>
      scenario(test, () => one.accept(bob.actor_id), {
        audit: [
          ...both,
          ...ids.map((offer_id) => ({
            event_type: 'role_grant_offer_supersede',
            account_id: bob.id,
            actor_id: bob.actor_id,
            target_account_id: bob.id,
            metadata: {
              offer_id,
              role: 'teacher',
              ...globally,
              reason: 'sibling_accepted',
              cause_id: one.offer.offer_id,
            },
          })),
        ],
        notify: [
          { account_id: one.ada.id, method: 'role_grant_offer_accepted' },
          ...siblings.map(({ ada }) => ({
            account_id: ada.id,
            method: 'role_grant_offer_supersede' as const,
          })),
        ],
      }).then((answer) => expect(answer.superseded_offer_ids).toEqual(ids)),
    )
    expect(sent.slice(1).map(({ params }) => params)).toEqual(
      siblings.map(({ offer }) => ({
        offer: { ...offer, superseded_at: expect.any(String) },
        reason: 'sibling_accepted',
        cause_id: one.offer.offer_id,
      })),
    )
    const { offers } = await bob.client.role_grant_offer_list({ acting: second })
    expect(offers.map(({ offer_id }) => offer_id).sort()).toEqual(
      [stay[0]?.offer.offer_id, stay[1]?.offer.offer_id].sort(),
    )
  })

  it('of an offer that names an actor is for that actor alone', async () => {
    const bob = await test.account()
    const second = await test.actor(bob.id, 'second')
    const { accept } = await offered({ to_actor_id: second }, bob)
    await scenario(test, () => accept(bob.actor_id), { reason: 'role_grant_offer_actor_mismatch' })
    expect((await accept(second)).offer).toMatchObject({ to_actor_id: second })
    expect((await grantsOf(test, second)).map(({ role }) => role)).toEqual(['teacher'])
  })

  it('of an unknown offer, or one to somebody else, is not found, and the answers are the same', async () => {
    const { offer, ada } = await offered()
    const eve = await test.account({ roles: ['admin'] })
    const answers = []
    for (const offer_id of [nobody, offer.offer_id])
      for (const { client } of [eve, ada]) {
        const outcome = await client.try.role_grant_offer_accept({ offer_id })
        answers.push(outcome.ok ? outcome : [outcome.error.status, outcome.error.data])
      }
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify([404, { reason: 'role_grant_offer_not_found' }])]),
    )
  })

  it.each<[string, (one: Offered) => Promise<unknown>, string]>([
    [
      'declined',
      ({ bob, offer }) => bob.client.role_grant_offer_decline({ offer_id: offer.offer_id }),
      'role_grant_offer_terminal',
    ],
    [
      'retracted',
      ({ ada, offer }) => ada.client.role_grant_offer_retract({ offer_id: offer.offer_id }),
      'role_grant_offer_terminal',
    ],
    ['lapsed', ({ offer }) => lapse(test, offer.offer_id), 'role_grant_offer_expired'],
    [
      'swept',
      ({ offer }) => lapse(test, offer.offer_id).then(() => test.service.operations.cleanUp()),
      'role_grant_offer_expired',
    ],
    [
      'superseded',
      ({ offer }) =>
        run`update role_grant_offer set superseded_at = now() where offer_id = ${offer.offer_id}`,
      'role_grant_offer_terminal',
    ],
  ])('of an offer that was %s is refused', async (_state, end, reason) => {
    const one = await offered()
    await end(one)
    await scenario(test, one.accept, { reason })
    await scenario(test, () => one.bob.client.role_grant_offer_decline({ offer_id: one.offer.offer_id }), {
      reason,
    })
    await scenario(test, () => one.ada.client.role_grant_offer_retract({ offer_id: one.offer.offer_id }), {
      reason,
    })
    expect(await grantsOf(test, one.bob.actor_id)).toEqual([])
  })
})

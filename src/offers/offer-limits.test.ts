import { expect, it } from 'vitest'
import { expire, holder, inRoom, lapse, registries } from '../../test/helpers/offers.ts'
import { tally } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, max_pending_offers: 3, max_role_grants: 2 })

const team = () => ({ role: 'teacher', scope_kind: 'team', scope_id: crypto.randomUUID() })
const offer = (from: TestAccount, to: TestAccount, more: object = team()) =>
  from.client.role_grant_offer_create({ to_account_id: to.id, role: 'teacher', ...more })

it('an actor has no more pending offers than the limit, but renews those that it has', async () => {
  const [ada, bob] = [await holder(test), await test.account()]
  const { offer: first } = await offer(ada, bob, inRoom)
  const { offer: second } = await offer(ada, bob)
  const { offer: third } = await offer(ada, await test.account())
  const refused = { reason: 'role_grant_offer_limit', limit: 'offers', max: 3 }
  await expect(offer(ada, bob)).rejects.toMatchObject({ data: refused })
  expect((await offer(ada, bob, inRoom)).offer.offer_id).toBe(first.offer_id)
  await offer(await holder(test), bob)

  await ada.client.role_grant_offer_retract({ offer_id: second.offer_id })
  await lapse(test, third.offer_id)
  const more = [1, 2, 3, 4].map(() => offer(ada, bob))
  expect(await tally(more)).toEqual({ ok: 2, role_grant_offer_limit: 2 })
})

it('an actor with more offers than a lowered limit renews each, but makes no other', async () => {
  const [ada, bob] = [await holder(test), await test.account()]
  await using before = await testService({
    ...registries,
    max_pending_offers: null,
    database_url: test.databaseUrl,
  })
  const made = Array.from({ length: 5 }, team)
  const earlier = { ...ada, client: before.client(ada.cookie) }
  const ids = new Set<string>()
  for (const one of made) ids.add((await offer(earlier, bob, one)).offer.offer_id)
  for (const one of made) expect(ids).toContain((await offer(ada, bob, one)).offer.offer_id)
  expect(await tally([offer(ada, bob)])).toEqual({ role_grant_offer_limit: 1 })
  expect(ids.size).toBe(5)
})

it('an actor at the limit of active grants accepts no offer of another role, but longer ones of the same', async () => {
  const [ada, bob] = [await holder(test), await test.account()]
  const accept = async (more?: object) => {
    const { offer_id } = (await offer(ada, bob, more)).offer
    return await bob.client.role_grant_offer_accept({ offer_id })
  }
  const first = await accept({ ...inRoom, grant_expires_at: '2999-01-01T00:00:00.000Z' })
  await accept()
  const refused = { reason: 'role_grant_offer_limit', limit: 'grants', max: 2 }
  await expect(accept(inRoom)).resolves.toMatchObject({ role_grant_id: first.role_grant_id, created: false })
  await expect(accept()).rejects.toMatchObject({ data: refused })
  const waiting = (await bob.client.role_grant_offer_list()).offers[0]
  await expire(test, first.role_grant_id)
  const offer_id = waiting?.offer_id as string
  expect(await bob.client.role_grant_offer_accept({ offer_id })).toMatchObject({ created: true })
})

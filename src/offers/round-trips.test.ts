import { afterAll, expect, it } from 'vitest'
import { byRoundTrips, postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { defaultSchema } from '../db/servers/locate.ts'
import { toUrl } from '../testing/cluster.ts'
import { testService } from '../testing/index.ts'

/** How often each transaction that changed a grant or offer waited for the server. */
const transactions: number[] = []
const other = await testService()
const proxy = await postgresProxy(
  { connectionString: other.databaseUrl },
  byRoundTrips(() => {
    let trips = 0
    let isOfRoles = false
    return (sent, isNew) => {
      const text = String(sent)
      if (text.includes('begin isolation')) {
        trips = 0
        isOfRoles = false
      }
      // Its audit rows name their events.
      isOfRoles ||= text.includes('"role_grant_')
      if (isNew) trips += 1
      if (text.includes('commit\0') && isOfRoles) transactions.push(trips)
    }
  }),
)
const test = await testService({ database_url: toUrl({ ...proxy.connection, schema: defaultSchema }) })
afterAll(async () => {
  await test.close()
  await proxy.close()
  await other.close()
})

it('an offer takes three round trips and the caller’s, its acceptance and the revocation four and the caller’s', async () => {
  const ada = await test.account({ roles: ['admin'] })
  const bob = await test.account()
  transactions.length = 0
  const { offer } = await ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'admin' })
  const { role_grant_id } = await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
  await ada.client.role_grant_revoke({ actor_id: bob.actor_id, role_grant_id })
  expect(transactions).toEqual([3, 4, 4])
})

it('to decline or retract one takes four and the caller’s', async () => {
  const ada = await test.account({ roles: ['admin'] })
  const bob = await test.account()
  const offered = () => ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'admin' })
  const { offer_id } = (await offered()).offer
  transactions.length = 0
  await bob.client.role_grant_offer_decline({ offer_id })
  await ada.client.role_grant_offer_retract({ offer_id: (await offered()).offer.offer_id })
  expect(transactions).toEqual([4, 3, 4])
})

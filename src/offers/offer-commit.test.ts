import { expect, it } from 'vitest'
import { grantsOf, heard, holder, lapse, registries } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
const run = (text: string) => test.service.app.db.run(sql.raw(text))
await run(`create function refuse_commit() returns trigger language plpgsql as $$
  begin raise exception 'refused at commit'; end $$`)
await run(`create constraint trigger refuse_commit after update on role_grant_offer deferrable initially deferred
  for each row when (new.message = 'refuse') execute function refuse_commit()`)

async function offered(message: string) {
  const [ada, bob] = [await holder(test), await test.account()]
  const params = { to_account_id: bob.id, role: 'teacher', message }
  const create = () => ada.client.role_grant_offer_create(params)
  const { offer } = await create()
  return { ada, bob, create, offer }
}

it('an accept whose commit fails leaves no grant, no stamp, no notification, and its rows as failures', async () => {
  const { bob, offer } = await offered('refuse')
  const accept = () => bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
  await scenario(test, accept, {
    reason: 'internal_error',
    audit: ['role_grant_offer_accept', 'role_grant_create'].map((event_type) => ({
      event_type,
      outcome: 'failure',
      actor_id: bob.actor_id,
    })),
  })
  expect(await grantsOf(test, bob.actor_id)).toEqual([])
  expect((await bob.client.role_grant_offer_list()).offers).toEqual([offer])
})

it('where audit rows cannot be written, offers are made, refreshed after a lapse and accepted all the same', async () => {
  const { db, audit } = test.service.app
  const { bob, create, offer } = await offered('fine')
  await lapse(test, offer.offer_id)
  const before = audit.failures
  await db.run(
    sql`alter table audit_inbox add constraint broken check (event_type not like 'role_grant%') not valid`,
  )
  try {
    const sent = await heard(test, async () => {
      const fresh = (await create()).offer
      expect(fresh.offer_id).not.toBe(offer.offer_id)
      expect(await bob.client.role_grant_offer_accept({ offer_id: fresh.offer_id })).toMatchObject({
        created: true,
      })
    })
    expect(sent.map(({ method }) => method)).toEqual([
      'role_grant_offer_received',
      'role_grant_offer_accepted',
    ])
    expect(audit.failures).toBe(before + 2)
  } finally {
    await db.run(sql`alter table audit_inbox drop constraint broken`)
  }
})

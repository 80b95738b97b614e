import { afterAll, expect, it } from 'vitest'
import { grantsOf, heard, holder, registries } from '../../test/helpers/offers.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

const admin = await test.account({ roles: ['admin', 'teacher'] })

/** Calls that wait for a lock of the rival until the end that they name has passed. */
const ways: Record<string, (bob: TestAccount, end: string) => Promise<unknown>> = {
  'assign: the account': (bob, expires_at) =>
    admin.client.role_grant_assign({ to_account_id: bob.id, role: 'teacher', expires_at }),
  'grantRole: the account': (bob, expires_at) =>
    test.service.operations.grantRole(
      { actor_id: bob.actor_id, role: 'teacher', path: 'system', expires_at },
      { via: 'test' },
    ),
  'create: the account': (bob, grant_expires_at) =>
    admin.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', grant_expires_at }),
}

/** Half a second ahead: long enough to reach the lock, short enough to wait for. */
const soon = async (): Promise<string> =>
  (await other.query(`select now() + interval '500 ms' as soon`)).rows[0].soon.toISOString()
const passing = (end: string): Promise<unknown> =>
  expect
    .poll(async () => (await other.query('select clock_timestamp() > $1 as past', [end])).rows[0].past, {
      timeout: 30_000,
      interval: 20,
    })
    .toBe(true)

/** Runs a call while the rival holds a row, releases the row once the end has passed, and resolves to the outcome. */
async function heldUntil(end: string, lock: string, id: string, act: () => Promise<unknown>) {
  await other.begin(lock, [id])
  const acting = act().then(
    () => 'ok',
    (error) => error.data?.reason ?? error.reason,
  )
  await passing(end)
  await other.commit()
  return await acting
}

it.each(Object.entries(ways))(
  '%s lock outlasts the end that is asked for: nothing is made',
  async (_name, call) => {
    const bob = await test.account()
    const end = await soon()
    const lock = 'select from account where id = $1 for no key update'
    const sent = await heard(test, async () =>
      expect(await heldUntil(end, lock, bob.id, () => call(bob, end))).toBe('invalid_params'),
    )
    expect([sent, await grantsOf(test, bob.actor_id)]).toEqual([[], []])
    const { rows } = await other.query('select from role_grant_offer where to_account_id = $1', [bob.id])
    expect(rows).toEqual([])
  },
)

it('accept: the lock of a sibling offer outlasts the offer: it has lapsed, and no grant is made', async () => {
  const [bob, eve] = [await test.account(), await holder(test)]
  const wanted = { to_account_id: bob.id, role: 'teacher' }
  const sibling = (await eve.client.role_grant_offer_create(wanted)).offer
  const { offer_id } = (await admin.client.role_grant_offer_create(wanted)).offer
  const end = await soon()
  await other.query(
    'update role_grant_offer set expires_at = $2, grant_expires_at = $2 where offer_id = $1',
    [offer_id, end],
  )
  const lock = 'select from role_grant_offer where offer_id = $1 for update'
  const sent = await heard(test, async () =>
    expect(
      await heldUntil(end, lock, sibling.offer_id, () => bob.client.role_grant_offer_accept({ offer_id })),
    ).toBe('role_grant_offer_expired'),
  )
  expect([sent, await grantsOf(test, bob.actor_id)]).toEqual([[], []])
  expect((await bob.client.role_grant_offer_list()).offers).toMatchObject([{ offer_id: sibling.offer_id }])
})

it('accept: the lock of a sibling offer outlasts the authority of the grantor: the offer is superseded', async () => {
  const [bob, eve, ada] = [await test.account(), await holder(test), await holder(test)]
  const wanted = { to_account_id: bob.id, role: 'teacher' }
  const sibling = (await eve.client.role_grant_offer_create(wanted)).offer
  const { offer_id } = (await ada.client.role_grant_offer_create(wanted)).offer
  const end = await soon()
  await other.query('update role_grant set expires_at = $2 where id = $1', [ada.role_grant_id, end])
  const lock = 'update role_grant_offer set superseded_at = now() where offer_id = $1'
  const sent = await heard(test, async () =>
    expect(
      await heldUntil(end, lock, sibling.offer_id, () => bob.client.role_grant_offer_accept({ offer_id })),
    ).toBe('role_grant_offer_terminal'),
  )
  expect(sent).toMatchObject([{ account_id: ada.id, method: 'role_grant_offer_supersede' }])
  expect(await grantsOf(test, bob.actor_id)).toEqual([])
})

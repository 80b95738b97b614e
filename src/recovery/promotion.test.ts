import { describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { mailIsDown, tokenMailedTo } from '../../test/helpers/mailed.ts'
import { tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  ...mailIsDown,
  roles: [{ name: 'editor', grant_paths: ['admin'] }],
  limit_ticket_ip: 'off',
  limit_recover_ip: 'off',
  login_fail_floor_ms: 0,
})
const { operations } = test.service
const operator = { via: 'testing' }
const rogue = await test.account({ roles: ['admin', 'keeper'] })

const byAdmin = async ({ id: account_id }: TestAccount) =>
  (await rogue.client.admin_account_reset_link_create({ account_id, reveal: true })).link as string
const byOperator = async ({ id: account_id }: TestAccount) =>
  (await operations.createResetLink({ account_id }, operator)).link as string
/** Requested by anybody, and sent to an address that nobody has verified. */
const byMail = async (bob: TestAccount) => {
  await send(test, 'POST /recover', { body: { identifier: bob.username } })
  return `#ticket=${await tokenMailedTo(test, bob)}`
}
const personWithMail = () => {
  const username = `bob${++made}`
  return test.account({ username, email: `${username}@x.io` })
}
let made = 0
const statusOf = async (route: 'POST /ticket' | 'POST /reset', link: string) => {
  const body = {
    token: tokenOf(link),
    ...(route === 'POST /reset' && { password: 'an entirely new password' }),
  }
  return (await send(test, route, { body })).status
}
const assign = (role: string, { id: to_account_id }: TestAccount) =>
  rogue.client.role_grant_assign({ to_account_id, role })

describe.each<[string, (bob: TestAccount) => Promise<unknown>]>([
  ['an admin by assignment', (bob) => assign('admin', bob)],
  [
    'an admin by consent',
    async ({ id: to_account_id, client }) => {
      const { offer } = await rogue.client.role_grant_offer_create({ to_account_id, role: 'admin' })
      await client.role_grant_offer_accept({ offer_id: offer.offer_id })
    },
  ],
  [
    'an admin by an operator',
    ({ actor_id }) => operations.grantRole({ actor_id, role: 'admin', path: 'admin' }, operator),
  ],
  ['the keeper', ({ actor_id }) => operations.transferKeeper({ actor_id }, operator)],
])('whoever becomes %s', (_, promote) => {
  it.each([
    ['an admin has kept', byAdmin],
    ['has been mailed', byMail],
  ])('is not taken over by a link that %s', async (_how, link) => {
    const bob = await personWithMail()
    const [kept, own] = [await link(bob), await byOperator(bob)]
    await promote(bob)
    for (const route of ['POST /ticket', 'POST /reset'] as const)
      expect(await statusOf(route, kept)).toBe(404)
    expect((await bob.client.account_verify()).id).toBe(bob.id)
    expect(await statusOf('POST /reset', own)).toBe(200)
  })
})

it('an admin who is assigned the role again keeps the link to a verified address', async () => {
  const bob = await personWithMail()
  await operations.verifyEmail({ account_id: bob.id }, operator)
  await assign('admin', bob)
  const link = await byMail(bob)
  await assign('admin', bob)
  expect(await statusOf('POST /reset', link)).toBe(200)
})

it('another role leaves the links as they are', async () => {
  const bob = await personWithMail()
  const [link, mailed] = [await byAdmin(bob), await byMail(bob)]
  await assign('editor', bob)
  for (const one of [mailed, link]) expect(await statusOf('POST /ticket', one)).toBe(200)
  expect(await statusOf('POST /reset', link)).toBe(200)
})

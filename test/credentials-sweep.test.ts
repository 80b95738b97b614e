import { afterAll, expect, it } from 'vitest'
import { actions } from '../src/actions.ts'
import type { Method } from '../src/core/method.ts'
import type { TestAccount } from '../src/testing/index.ts'
import { sessionIn } from './helpers/account-routes.ts'
import { eternal } from './helpers/callers.ts'
import { mailIsDown } from './helpers/mailed.ts'
import { providerIsDown } from './helpers/oidc.ts'
import { reasonOf } from './helpers/outcome.ts'
import { device, onLocalhost } from './helpers/passkeys.ts'
import { rival } from './helpers/race.ts'
import { serviceForFile } from './helpers/service.ts'

/** A mutation that waits for the lock of its caller's account holds the credential afterwards, by which it was admitted. */

const test = await serviceForFile({
  ...mailIsDown,
  ...onLocalhost,
  ...providerIsDown,
  actor_rename: true,
  app_settings: true,
  username_change: 'self',
  roles: [{ name: 'guide', grant_paths: ['admin', 'self_service'] }],
  self_service_roles: ['guide'],
})
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

type Two = { me: TestAccount; ada: TestAccount }
type Call = () => Promise<unknown>
type Row = (two: Two) => Call | Promise<Call>

const uuid = '00000000-0000-4000-8000-00000000c0de'
const offered = async (by: TestAccount, to: TestAccount) => {
  const { offer } = await by.client.role_grant_offer_create({ to_account_id: to.id, role: 'guide' })
  return { offer_id: offer.offer_id }
}
const invited = async ({ client }: TestAccount) => {
  const { invite } = await client.invite_create({ username: `u${Date.now()}`, reveal: true })
  return invite.id
}
const minted = async ({ client }: TestAccount) =>
  (await client.account_token_create({ scope: { kind: 'full' }, lifetime: eternal })).id
const made = async ({ client }: TestAccount) => (await client.cell_create({ data: {} })).cell.id
/** A cell with an item, a field and a grant. */
const furnished = async ({ client }: TestAccount, ada: TestAccount) => {
  const [cell_id, far] = [await made({ client } as TestAccount), await made({ client } as TestAccount)]
  await client.cell_item_insert({ parent_id: cell_id, child_id: far, position: 'a0' })
  await client.cell_field_set({ source_id: cell_id, name: 'a', target_id: far })
  const principal = { actor_id: ada.actor_id }
  const { grant } = await client.cell_grant_create({ cell_id, level: 'viewer', principal })
  return { cell_id, far, grant_id: grant.id }
}

/** Refused once the session has ended while they waited. */
const waiting: Record<string, Row> = {
  account_delete:
    ({ me }) =>
    () =>
      me.client.account_delete(),
  account_email_change:
    ({ me }) =>
    () =>
      me.client.account_email_change({ email: 'new@example.com' }),
  account_email_verify_send: ({ me }) => me.client.account_email_verify_send,
  account_link_remove:
    ({ me }) =>
    () =>
      me.client.account_link_remove({ link_id: uuid }),
  account_passkey_register_begin:
    ({ me }) =>
    () =>
      me.client.account_passkey_register_begin({}),
  account_passkey_register_finish: async ({ me }) => {
    const { options } = await me.client.account_passkey_register_begin({})
    const response = device().create(options as never)
    return () => me.client.account_passkey_register_finish({ response })
  },
  account_passkey_remove:
    ({ me }) =>
    () =>
      me.client.account_passkey_remove({ passkey_id: 'AAAA' }),
  account_passkey_rename:
    ({ me }) =>
    () =>
      me.client.account_passkey_rename({ passkey_id: 'AAAA', name: 'x' }),
  account_recovery_codes_create: ({ me }) => me.client.account_recovery_codes_create,
  account_token_create:
    ({ me }) =>
    () =>
      minted(me),
  account_totp_confirm:
    ({ me }) =>
    () =>
      me.client.account_totp_confirm({ code: '123456' }),
  account_totp_enrol: ({ me }) => me.client.account_totp_enrol,
  account_totp_remove: ({ me }) => me.client.account_totp_remove,
  account_undelete:
    ({ me, ada }) =>
    () =>
      me.client.account_undelete({ account_id: ada.id }),
  account_username_change:
    ({ me }) =>
    () =>
      me.client.account_username_change({ username: `${me.username}x` }),
  actor_rename:
    ({ me }) =>
    () =>
      me.client.actor_rename({ name: 'another' }),
  admin_account_email_set:
    ({ me, ada }) =>
    () =>
      me.client.admin_account_email_set({ account_id: ada.id, email: null }),
  admin_account_factors_clear:
    ({ me, ada }) =>
    () =>
      me.client.admin_account_factors_clear({ account_id: ada.id }),
  admin_account_reset_link_create:
    ({ me, ada }) =>
    () =>
      me.client.admin_account_reset_link_create({ account_id: ada.id, reveal: true }),
  admin_account_username_set:
    ({ me, ada }) =>
    () =>
      me.client.admin_account_username_set({ account_id: ada.id, username: `${ada.username}x` }),
  admin_session_revoke_all:
    ({ me, ada }) =>
    () =>
      me.client.admin_session_revoke_all({ account_id: ada.id }),
  admin_token_revoke_all:
    ({ me, ada }) =>
    () =>
      me.client.admin_token_revoke_all({ account_id: ada.id }),
  role_grant_assign:
    ({ me, ada }) =>
    () =>
      me.client.role_grant_assign({ to_account_id: ada.id, role: 'guide' }),
  role_grant_offer_accept: async ({ me, ada }) => {
    const offer = await offered(ada, me)
    return () => me.client.role_grant_offer_accept(offer)
  },
  role_grant_offer_create:
    ({ me, ada }) =>
    () =>
      offered(me, ada),
  role_grant_offer_decline: async ({ me, ada }) => {
    const offer = await offered(ada, me)
    return () => me.client.role_grant_offer_decline(offer)
  },
  role_grant_offer_retract: async ({ me, ada }) => {
    const offer = await offered(me, ada)
    return () => me.client.role_grant_offer_retract(offer)
  },
  role_grant_revoke: async ({ me, ada: { actor_id } }) => {
    const { role_grant_id } = await test.roleGrant({ actor_id, role: 'guide' })
    return () => me.client.role_grant_revoke({ actor_id, role_grant_id })
  },
  self_service_role_set:
    ({ me }) =>
    () =>
      me.client.self_service_role_set({ role: 'guide', enabled: true }),
}

/** Those that do not wait for the account of their caller. */
const independent: Record<string, Row> = {
  account_session_revoke:
    ({ me }) =>
    () =>
      me.client.account_session_revoke({ session_id: sessionIn(me.cookie) }),
  account_token_revoke: async ({ me }) => {
    const token_id = await minted(me)
    return () => me.client.account_token_revoke({ token_id })
  },
  admin_session_revoke:
    ({ me, ada }) =>
    () =>
      me.client.admin_session_revoke({ session_id: sessionIn(ada.cookie) }),
  admin_ticket_revoke: async ({ me, ada }) => {
    const input = { account_id: ada.id, reveal: true }
    const { ticket } = await me.client.admin_account_reset_link_create(input)
    return () => me.client.admin_ticket_revoke({ ticket_id: ticket.id })
  },
  admin_token_revoke: async ({ me, ada }) => {
    const token_id = await minted(ada)
    return () => me.client.admin_token_revoke({ token_id })
  },
  app_settings_update:
    ({ me }) =>
    () =>
      me.client.app_settings_update({ open_signup: true }),
  invite_create:
    ({ me }) =>
    () =>
      invited(me),
  invite_delete: async ({ me }) => {
    const invite_id = await invited(me)
    return () => me.client.invite_delete({ invite_id })
  },
  invite_send: async ({ me }) => {
    const invite_id = await invited(me)
    return () => me.client.invite_send({ invite_id, reveal: true })
  },
  cell_create:
    ({ me }) =>
    () =>
      made(me),
  cell_update: async ({ me }) => {
    const cell_id = await made(me)
    return () => me.client.cell_update({ cell_id, data: { a: 1 } })
  },
  cell_delete: async ({ me }) => {
    const cell_id = await made(me)
    return () => me.client.cell_delete({ cell_id })
  },
  cell_clone: async ({ me, ada }) => {
    const { cell_id } = await furnished(me, ada)
    return () => me.client.cell_clone({ source_id: cell_id })
  },
  cell_grant_create: async ({ me, ada }) => {
    const cell_id = await made(me)
    const principal = { actor_id: ada.actor_id }
    return () => me.client.cell_grant_create({ cell_id, level: 'viewer', principal })
  },
  cell_grant_revoke: async ({ me, ada }) => {
    const { grant_id } = await furnished(me, ada)
    return () => me.client.cell_grant_revoke({ grant_id })
  },
  cell_field_set: async ({ me, ada }) => {
    const { cell_id, far } = await furnished(me, ada)
    return () => me.client.cell_field_set({ source_id: cell_id, name: 'b', target_id: far })
  },
  cell_field_delete: async ({ me, ada }) => {
    const { cell_id } = await furnished(me, ada)
    return () => me.client.cell_field_delete({ source_id: cell_id, name: 'a' })
  },
  cell_item_insert: async ({ me, ada }) => {
    const { cell_id, far } = await furnished(me, ada)
    return () => me.client.cell_item_insert({ parent_id: cell_id, child_id: far, position: 'b0' })
  },
  cell_item_move: async ({ me, ada }) => {
    const { cell_id } = await furnished(me, ada)
    return () => me.client.cell_item_move({ parent_id: cell_id, position: 'a0', new_position: 'b0' })
  },
  cell_item_delete: async ({ me, ada }) => {
    const { cell_id } = await furnished(me, ada)
    return () => me.client.cell_item_delete({ parent_id: cell_id, position: 'a0' })
  },
}

/** It only ends sessions, and so it may end them on behalf of one that ended a moment ago. */
const excepted = 'account_session_revoke_all'

const both = async (): Promise<Two> => ({
  me: await test.account({ roles: ['admin', 'guide'], email: undefined }),
  ada: await test.account({ roles: ['guide'] }),
})

it('every mutation of a session is below', () => {
  const all = Object.entries<Method>(actions).filter(
    ([, { side_effects, auth }]) => side_effects && (auth.credential_types?.includes('session') ?? true),
  )
  const below = [...Object.keys(waiting), ...Object.keys(independent), excepted]
  expect(below.sort()).toEqual(all.map(([method]) => method).sort())
})

it.each(Object.entries(waiting))(
  '%s is refused if its session ends while it waits for the lock of its account',
  async (_method, row) => {
    const two = await both()
    const call = await row(two)
    await other.begin('select from account where id = $1 for no key update', [two.me.id])
    const asked = reasonOf(call())
    await Promise.race([asked, other.blocks(1)])
    await other.query('delete from auth_session where id = $1', [sessionIn(two.me.cookie)])
    await other.commit()
    expect(await asked).toBe('authentication_required')
  },
)

it.each(Object.entries(independent))('%s does not wait for the lock of its account', async (_method, row) => {
  const two = await both()
  const call = await row(two)
  await other.begin('select from account where id = $1 for no key update', [two.me.id])
  const reason = await reasonOf(call())
  await other.commit()
  expect(reason).toBe('ok')
})

it.each(['role_grant_offer_accept', 'self_service_role_set'])(
  '%s locks its account and then its session, whose end waits for the grant',
  async (method) => {
    const me = await test.account()
    const call = (await waiting[method]?.({ me, ada: await test.account({ roles: ['guide'] }) })) as Call
    // The same grant: the call waits for it once it has every lock.
    await other.begin("insert into role_grant (actor_id, role) values ($1, 'guide')", [me.actor_id])
    const asked = reasonOf(call())
    await other.blocks(1)
    const ended = me.client.account_session_revoke({ session_id: sessionIn(me.cookie) })
    expect(await Promise.race([ended, other.blocks(2).then(() => 'it waits')])).toBe('it waits')
    await other.query('rollback')
    expect([await asked, await ended]).toEqual(['ok', { ok: true, revoked: true }])
  },
)

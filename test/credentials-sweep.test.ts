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
/** The input of a call, once what it needs has been made. */
type Row = (two: Two) => unknown

const uuid = '00000000-0000-4000-8000-00000000c0de'
const toGuide = ({ id }: TestAccount) => ({ to_account_id: id, role: 'guide' })
const offered = async (by: TestAccount, to: TestAccount) => {
  const { offer } = await by.client.role_grant_offer_create(toGuide(to))
  return { offer_id: offer.offer_id }
}
const newInvite = () => ({ username: `u${Date.now()}`, reveal: true })
const invited = async ({ client }: TestAccount) => (await client.invite_create(newInvite())).invite.id
const fullToken = { scope: { kind: 'full' as const }, lifetime: eternal }
const minted = async ({ client }: TestAccount) => (await client.account_token_create(fullToken)).id
const made = async ({ client }: TestAccount) => (await client.cell_create({ data: {} })).cell.id
const viewedBy = ({ actor_id }: TestAccount, cell_id: string) => ({
  cell_id,
  level: 'viewer' as const,
  principal: { actor_id },
})
/** A cell with an item, a field and a grant. */
const furnished = async ({ me, ada }: Two) => {
  const [cell_id, far] = [await made(me), await made(me)]
  await me.client.cell_item_insert({ parent_id: cell_id, child_id: far, position: 'a0' })
  await me.client.cell_field_set({ source_id: cell_id, name: 'a', target_id: far })
  const { grant } = await me.client.cell_grant_create(viewedBy(ada, cell_id))
  return { cell_id, far, grant_id: grant.id }
}
/** Makes what a row needs; the returned function calls its method. */
const prepared = async (method: string, row: Row | undefined, two: Two) => {
  const input = await row?.(two)
  return () => two.me.client[method as 'cell_create'](input as never)
}

/** Refused once the session has ended while they waited. */
const waiting: Record<string, Row> = {
  account_delete: () => undefined,
  account_email_change: () => ({ email: 'new@example.com' }),
  account_email_verify_send: () => undefined,
  account_link_remove: () => ({ link_id: uuid }),
  account_passkey_register_begin: () => ({}),
  account_passkey_register_finish: async ({ me }) => {
    const { options } = await me.client.account_passkey_register_begin({})
    return { response: device().create(options as never) }
  },
  account_passkey_remove: () => ({ passkey_id: 'AAAA' }),
  account_passkey_rename: () => ({ passkey_id: 'AAAA', name: 'x' }),
  account_recovery_codes_create: () => undefined,
  account_token_create: () => fullToken,
  account_totp_confirm: () => ({ code: '123456' }),
  account_totp_enrol: () => undefined,
  account_totp_remove: () => undefined,
  account_undelete: ({ ada }) => ({ account_id: ada.id }),
  account_username_change: ({ me }) => ({ username: `${me.username}x` }),
  actor_rename: () => ({ name: 'another' }),
  admin_account_email_set: ({ ada }) => ({ account_id: ada.id, email: null }),
  admin_account_factors_clear: ({ ada }) => ({ account_id: ada.id }),
  admin_account_reset_link_create: ({ ada }) => ({ account_id: ada.id, reveal: true }),
  admin_account_username_set: ({ ada }) => ({ account_id: ada.id, username: `${ada.username}x` }),
  admin_session_revoke_all: ({ ada }) => ({ account_id: ada.id }),
  admin_token_revoke_all: ({ ada }) => ({ account_id: ada.id }),
  role_grant_assign: ({ ada }) => toGuide(ada),
  role_grant_offer_accept: ({ me, ada }) => offered(ada, me),
  role_grant_offer_create: ({ ada }) => toGuide(ada),
  role_grant_offer_decline: ({ me, ada }) => offered(ada, me),
  role_grant_offer_retract: ({ me, ada }) => offered(me, ada),
  role_grant_revoke: async ({ ada: { actor_id } }) => {
    const { role_grant_id } = await test.roleGrant({ actor_id, role: 'guide' })
    return { actor_id, role_grant_id }
  },
  self_service_role_set: () => ({ role: 'guide', enabled: true }),
}

/** Those that do not wait for the account of their caller. */
const independent: Record<string, Row> = {
  account_session_revoke: ({ me }) => ({ session_id: sessionIn(me.cookie) }),
  account_token_revoke: async ({ me }) => ({ token_id: await minted(me) }),
  admin_session_revoke: ({ ada }) => ({ session_id: sessionIn(ada.cookie) }),
  admin_ticket_revoke: async ({ me, ada }) => {
    const input = { account_id: ada.id, reveal: true }
    const { ticket } = await me.client.admin_account_reset_link_create(input)
    return { ticket_id: ticket.id }
  },
  admin_token_revoke: async ({ ada }) => ({ token_id: await minted(ada) }),
  app_settings_update: () => ({ open_signup: true }),
  invite_create: newInvite,
  invite_delete: async ({ me }) => ({ invite_id: await invited(me) }),
  invite_send: async ({ me }) => ({ invite_id: await invited(me), reveal: true }),
  cell_create: () => ({ data: {} }),
  cell_update: async ({ me }) => ({ cell_id: await made(me), data: { a: 1 } }),
  cell_delete: async ({ me }) => ({ cell_id: await made(me) }),
  cell_clone: async (two) => ({ source_id: (await furnished(two)).cell_id }),
  cell_grant_create: async ({ me, ada }) => viewedBy(ada, await made(me)),
  cell_grant_revoke: async (two) => ({ grant_id: (await furnished(two)).grant_id }),
  cell_field_set: async (two) => {
    const { cell_id, far } = await furnished(two)
    return { source_id: cell_id, name: 'b', target_id: far }
  },
  cell_field_delete: async (two) => ({ source_id: (await furnished(two)).cell_id, name: 'a' }),
  cell_item_insert: async (two) => {
    const { cell_id, far } = await furnished(two)
    return { parent_id: cell_id, child_id: far, position: 'b0' }
  },
  cell_item_move: async (two) => {
    const { cell_id } = await furnished(two)
    return { parent_id: cell_id, position: 'a0', new_position: 'b0' }
  },
  cell_item_delete: async (two) => ({ parent_id: (await furnished(two)).cell_id, position: 'a0' }),
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
  async (method, row) => {
    const two = await both()
    const call = await prepared(method, row, two)
    await other.begin('select from account where id = $1 for no key update', [two.me.id])
    const asked = reasonOf(call())
    await Promise.race([asked, other.blocks(1)])
    await other.query('delete from auth_session where id = $1', [sessionIn(two.me.cookie)])
    await other.commit()
    expect(await asked).toBe('authentication_required')
  },
)

it.each(Object.entries(independent))('%s does not wait for the lock of its account', async (method, row) => {
  const two = await both()
  const call = await prepared(method, row, two)
  await other.begin('select from account where id = $1 for no key update', [two.me.id])
  const reason = await reasonOf(call())
  await other.commit()
  expect(reason).toBe('ok')
})

it.each(['role_grant_offer_accept', 'self_service_role_set'])(
  '%s locks its account and then its session, whose end waits for the grant',
  async (method) => {
    const me = await test.account()
    const two = { me, ada: await test.account({ roles: ['guide'] }) }
    const call = await prepared(method, waiting[method], two)
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

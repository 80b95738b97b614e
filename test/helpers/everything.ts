import { sql } from '../../src/db/db.ts'
import { type TestAccount, type TestService, testService } from '../../src/testing/index.ts'
import { send, sessionIn } from './account-routes.ts'
import type { bootstrapTest } from './bootstrap.ts'
import { signIn, type TestProvider, testProvider } from './oidc.ts'
import { codeOf, firstStep, guarded, secondStep, wrongCode } from './totp.ts'

/** Part of every name, address, message and secret that a caller of `doEverything` types. */
export const mark = 'zq7x'

const operator = { via: 'testing' }
const nobody = '00000000-0000-4000-8000-00000000dead'
const room = '00000000-0000-4000-8000-00000000c1a5'
const password = `${mark} long password`
const role = 'teacher'

type Refused = { ok: boolean }

/** Makes a call that must be refused, and throws if it is not. */
async function refused(call: Promise<Refused | { status: number }>): Promise<void> {
  const answer = await call
  if ('ok' in answer ? answer.ok : answer.status < 400)
    throw new Error('a call that should be refused went through')
}

/**
 * Uses every method, route and operation that writes to the audit log, and provokes every refusal that is
 * recorded there, on a new database. Resolves to a service on it.
 */
export async function doEverything({ open }: ReturnType<typeof bootstrapTest>): Promise<TestService> {
  const first = await open()
  await first.bootstrap({ token: `${mark} token`, username: `${mark}_eve`, password })
  await first.bootstrap({ token: first.token, username: `${mark}_keeper`, password })
  const provider = await testProvider()
  const test = await testService({
    oidc: [provider.entry()],
    database_url: first.test.databaseUrl,
    app_settings: true,
    roles: [
      { name: role, grant_paths: ['admin', 'self_service', 'system'] },
      { name: 'silent', grant_paths: ['system'] },
    ],
    scope_kinds: [{ name: 'room' }],
    self_service_roles: [role],
  })
  const account = (name: string, roles: string[] = []) =>
    test.account({ username: `${mark}_${name}`, password, email: `${name}@${mark}.example`, roles })
  const admin = await account('admin', ['admin'])
  const ada = await account('ada')
  const bob = await account('bob')
  await accountsAndTokens(test, admin, ada, await account('dora'))
  await linkAndUnlink(test, provider, ada)
  await invitesAndSettings(test, admin)
  await rolesAndOffers(test, admin, ada, bob)
  await cells(ada, bob)
  await links(test, admin, await account('lena'))
  await endings(test, admin, await account('carl'))
  return test
}

async function links(test: TestService, { client }: TestAccount, { id: account_id }: TestAccount) {
  await refused(client.try.admin_account_reset_link_create({ account_id: nobody }))
  const { link } = await client.admin_account_reset_link_create({ account_id, reveal: true })
  const body = { token: link?.split('#ticket=')[1], password: `${mark} other long one` }
  for (const status of [200, 404]) {
    const reply = await send(test, 'POST /reset', { body })
    if (reply.status !== status) throw new Error(`a reset is answered with ${reply.status}`)
  }
  const { ticket } = await test.service.operations.secureAccount({ account_id }, operator)
  await client.admin_ticket_revoke({ ticket_id: ticket.id })
}

async function linkAndUnlink(test: TestService, provider: TestProvider, { client, cookie }: TestAccount) {
  const person = { sub: `${mark} subject`, email: `person@${mark}.example`, name: mark }
  await refused(signIn(test, provider, person))
  await signIn(test, provider, person, { intent: 'link', cookie })
  const { id: link_id } = await test.service.app.db.one<{ id: string }>(sql`select id from account_link`)
  await client.account_link_remove({ link_id })
  await provider.close()
}

async function accountsAndTokens(
  test: TestService,
  admin: TestAccount,
  ada: TestAccount,
  capped: TestAccount,
): Promise<void> {
  const { operations } = test.service
  const login = (username: string, given = password) =>
    send(test, 'POST /login', { body: { username, password: given } })
  await refused(login(password))
  await refused(login(ada.username, `${mark} wrong`))
  const { cookie } = await login(ada.username)
  await refused(send(test, 'POST /reauthenticate', { cookie, body: { password: `${mark} wrong` } }))
  const fresh = await send(test, 'POST /reauthenticate', { cookie, body: { password } })
  await send(test, 'POST /logout', { cookie: fresh.cookie })
  await secondFactors(test, admin)
  await login(ada.username)
  // One more than an account may have.
  for (let n = 0; n < 6; n++) await login(capped.username)
  const { sessions } = await ada.client.account_session_list()
  await ada.client.account_session_revoke({
    session_id: sessions.find(({ id }) => id !== sessionIn(ada.cookie))?.id ?? '',
  })
  for (const name of ['one', 'two']) {
    const { id } = (await ada.client.account_token_create({
      name: `${mark} ${name}`,
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })) as { id: string }
    if (name === 'one') await ada.client.account_token_revoke({ token_id: id })
  }
  await admin.client.admin_token_revoke_all({ account_id: ada.id })
  await refused(admin.client.try.admin_token_revoke_all({ account_id: nobody }))
  await refused(admin.client.try.admin_session_revoke_all({ account_id: nobody }))
  const change = (current_password: string) =>
    send(test, 'POST /password', { body: { current_password, new_password: password }, cookie: ada.cookie })
  await refused(change(`${mark} wrong`))
  const rename = (account_id: string) =>
    admin.client.try.admin_account_username_set({ account_id, username: `${mark}_renamed` })
  await refused(rename(admin.id))
  await rename(ada.id)
  await operations.setEmail({ account_id: ada.id, email: `new@${mark}.example` }, operator)
  const { id: actor_id } = await operations.addActor({ account_id: ada.id, name: `${mark} second` }, operator)
  await operations.renameActor({ actor_id, name: `${mark} renamed` }, operator)
  await operations.removeActor({ actor_id }, operator)
}

async function secondFactors(test: TestService, admin: TestAccount): Promise<void> {
  const eve = await guarded(test, { username: `${mark}_eva`, password, email: `eva@${mark}.example` })
  const { cookie } = await firstStep(test, eve)
  await refused(secondStep(test, cookie, { totp: wrongCode(eve.secret) }))
  await secondStep(test, cookie, { totp: codeOf(eve.secret) })
  await eve.client.account_totp_remove()
  await refused(admin.client.try.admin_account_factors_clear({ account_id: admin.id }))
}

async function invitesAndSettings(test: TestService, { client }: TestAccount): Promise<void> {
  const signup = (name: string) =>
    send(test, 'POST /signup', {
      body: { username: `${mark}_${name}`, password, email: `${name}@${mark}.example` },
    })
  await refused(signup('stranger'))
  const invite = { username: `${mark}_invited`, email: `invited@${mark}.example` }
  await client.invite_create(invite)
  await refused(client.try.invite_create(invite))
  await signup('invited')
  const other = await client.invite_create({ username: `${mark}_uninvited` })
  await client.invite_delete({ invite_id: other.invite.id })
  await refused(client.try.invite_delete({ invite_id: nobody }))
  await client.app_settings_update({ open_signup: true })
}

async function rolesAndOffers(
  test: TestService,
  { client, actor_id }: TestAccount,
  ada: TestAccount,
  bob: TestAccount,
): Promise<void> {
  const assign = { to_account_id: ada.id, role, scope_kind: 'room', scope_id: room }
  const { role_grant_id } = await client.role_grant_assign(assign)
  await refused(client.try.role_grant_assign({ ...assign, role: mark.replace(/\d/g, '') }))
  await refused(client.try.role_grant_assign({ to_account_id: ada.id, role: 'keeper' }))
  const grants = await test.service.app.db.rows<{ id: string }>(sql`
    select id from role_grant where actor_id = ${actor_id}::uuid and role = 'admin'`)
  const own = { actor_id, role_grant_id: grants[0]?.id ?? '' }
  const silent = await test.roleGrant({ actor_id: ada.actor_id, role: 'silent' })
  await refused(
    client.try.role_grant_revoke({ ...own, actor_id: ada.actor_id, role_grant_id: silent.role_grant_id }),
  )
  const message = `${mark} message`
  const offer = async () => {
    const input = { to_account_id: bob.id, role, scope_kind: 'room', scope_id: room, message }
    return (await ada.client.role_grant_offer_create(input)).offer.offer_id
  }
  await refused(ada.client.try.role_grant_offer_create({ to_account_id: bob.id, role: 'admin', message }))
  await bob.client.role_grant_offer_decline({ offer_id: await offer(), reason: `${mark} reason` })
  await ada.client.role_grant_offer_retract({ offer_id: await offer() })
  await bob.client.role_grant_offer_accept({ offer_id: await offer() })
  await offer()
  await test.service.app.db.run(sql`
    update role_grant_offer set expires_at = now() where expired_at is null and accepted_at is null`)
  await test.service.operations.cleanUp()
  await test.service.join()
  await test.service.operations.drainNode({ node_id: test.service.app.node.id }, operator)
  await test.service.operations.resumeNode({ node_id: test.service.app.node.id }, operator)
  await offer()
  const reason = `${mark} reason`
  await client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id, reason })
  await ada.client.self_service_role_set({ role, enabled: true })
  await ada.client.self_service_role_set({ role, enabled: false })
  await test.service.operations.destroyScope({ scope_kind: 'room', scope_id: room, reason }, operator)
}

async function cells({ client }: TestAccount, bob: TestAccount): Promise<void> {
  const made = async () => (await client.cell_create({ kind: 'note', data: { text: mark } })).cell.id
  const [a, b] = [await made(), await made()]
  await client.cell_update({ cell_id: a, data: { text: `${mark} again` } })
  await client.cell_field_set({ source_id: a, name: 'next', target_id: b })
  await client.cell_field_delete({ source_id: a, name: 'next' })
  await client.cell_item_insert({ parent_id: a, child_id: b, position: 'a0' })
  await client.cell_item_move({ parent_id: a, position: 'a0', new_position: 'a1' })
  await client.cell_item_delete({ parent_id: a, position: 'a1' })
  await client.cell_clone({ source_id: a, with_data_patch: { text: mark } })
  const principal = { actor_id: bob.actor_id }
  const { grant } = await client.cell_grant_create({ cell_id: a, level: 'viewer', principal })
  await client.cell_grant_revoke({ grant_id: grant.id })
  await client.cell_delete({ cell_id: b })
}

/** Comes last, as it ends the sessions that did the rest. */
async function endings(test: TestService, admin: TestAccount, carl: TestAccount): Promise<void> {
  const { operations } = test.service
  const of = { account_id: carl.id }
  const unknown = { account_id: nobody }
  await carl.client.account_session_revoke_all()
  await refused(admin.client.try.account_delete(unknown))
  await refused(admin.client.try.account_undelete(unknown))
  await admin.client.account_delete(of)
  await admin.client.account_undelete(of)
  await operations.setPassword({ ...of, password: `${mark} other password` }, operator)
  await operations.purgeAccount({ ...of, confirm: true }, operator)
  await operations.purgeAccount({ ...unknown, confirm: true }, operator).catch(() => {})
}

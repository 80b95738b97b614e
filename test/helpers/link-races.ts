import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { send } from './account-routes.ts'
import {
  admin,
  type Contender,
  call,
  credentials,
  login,
  only,
  operator,
  type Race,
  race,
  rows,
} from './race-tools.ts'

const fresh = 'an entirely new password'
const tokenIn = (link: string | null): string => (link ?? '').split('#ticket=')[1] as string

const linkFor = async ({ service }: TestService, { id }: TestAccount): Promise<string> =>
  tokenIn((await service.operations.createResetLink({ account_id: id }, operator)).link)

const post =
  (world: TestService, route: string, body: object): Contender =>
  async () => {
    const { status, json } = await send(world, `POST ${route}`, { body })
    if (status !== 200) throw { reason: json?.error }
  }
const reset = (world: TestService, token: string): Contender =>
  post(world, '/reset', { token, password: fresh })
const mint =
  ({ client }: TestAccount): Contender =>
  () =>
    client.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })

const openTickets = async (world: TestService): Promise<number> =>
  (
    await rows(
      world,
      sql`select from account_ticket where purpose in ('password_reset', 'invite') and used_at is null
        and voided_at is null and expires_at > now()`,
    )
  ).length

/** Signs in with a password; resolves to whether it was right. */
const isIn = (world: TestService, account: TestAccount, password: string): Promise<boolean> =>
  login(world, { ...account, password })().then(
    () => true,
    () => false,
  )

/** Races of one-time links: to set passwords and to claim invites. */
export const linkRaces: Record<string, Race> = {
  'one link to reset a password is used six times': async (world) => {
    const ada = await world.account()
    const token = await linkFor(world, ada)
    const outcomes = await race(Array.from({ length: 6 }, () => reset(world, token)))
    only(outcomes, ['ok', 'ticket_not_found'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1)
    return 'once'
  },

  'two links of one account are used at once': async (world) => {
    const ada = await world.account()
    const tokens = [await linkFor(world, ada), await linkFor(world, ada)]
    const outcomes = await race(tokens.map((token) => reset(world, token)))
    assert.deepEqual(outcomes.toSorted(), ['ok', 'ticket_not_found'])
    return outcomes.join(' / ')
  },

  'a password is reset while its owner signs in, mints and changes it': async (world) => {
    const ada = await world.account()
    const token = await linkFor(world, ada)
    const [was, ...others] = await race([
      reset(world, token),
      login(world, ada),
      mint(ada),
      () =>
        ada.client.account.password({
          current_password: ada.password,
          new_password: 'another long password',
        }),
    ])
    only([was as string], ['ok', 'ticket_not_found'])
    only(others, ['ok', 'invalid_credentials', 'authentication_required', 'account_vanished'])
    const left = await credentials(world, ada)
    assert.deepEqual(left, { sessions: 0, tokens: 0 }, 'what the old password opened is closed')
    assert.equal(await isIn(world, ada, ada.password), false)
    assert.equal(await isIn(world, ada, fresh), was === 'ok' && others[2] !== 'ok')
    assert.equal(await openTickets(world), 0)
    return [was, ...others].join(' / ')
  },

  'a password is reset while the account is deleted': async (world) => {
    const ada = await world.account()
    const token = await linkFor(world, ada)
    const [, deleted] = await race([
      reset(world, token),
      () => world.service.operations.deleteAccount({ account_id: ada.id }, operator),
    ])
    assert.equal(deleted, 'ok')
    await world.service.operations.undeleteAccount({ account_id: ada.id }, operator)
    await assert.rejects(reset(world, token)())
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    return 'ended'
  },

  'an account is secured while its thief is at work': async (world) => {
    const ada = await world.account()
    const token = await linkFor(world, ada)
    let link: string | null = null
    const [secured, ...others] = await race([
      async () => {
        link = (await world.service.operations.secureAccount({ account_id: ada.id }, operator)).link
      },
      reset(world, token),
      login(world, ada),
      mint(ada),
    ])
    assert.equal(secured, 'ok')
    only(others, [
      'ok',
      'ticket_not_found',
      'invalid_credentials',
      'authentication_required',
      'account_vanished',
    ])
    assert.deepEqual(await credentials(world, ada), { sessions: 0, tokens: 0 })
    for (const password of [ada.password, fresh]) assert.equal(await isIn(world, ada, password), false)
    assert.equal(await openTickets(world), 1, 'only the link of the operator is left')
    await reset(world, tokenIn(link))()
    return others.join(' / ')
  },

  'a link is revoked while it is used': async (world) => {
    const [ada, root] = [await world.account(), await admin(world)]
    const token = await linkFor(world, ada)
    const [ticket] = await rows<{ id: string }>(world, sql`select id from account_ticket`)
    const outcomes = await race([
      reset(world, token),
      call(world, root, 'admin_ticket_revoke', { ticket_id: ticket?.id }),
    ])
    only(outcomes, ['ok', 'ticket_not_found'])
    assert.equal(outcomes[1], 'ok')
    assert.equal(await openTickets(world), 0)
    return outcomes.join(' / ')
  },

  'recovery is asked for by name and address while an admin makes a link': async (world) => {
    const [ada, root] = [await world.account({ email: 'ada@x.io' }), await admin(world)]
    const recover = (identifier: string): Contender => post(world, '/recover', { identifier })
    const outcomes = await race([
      recover(ada.username),
      recover('ada@x.io'),
      call(world, root, 'admin_account_reset_link_create', { account_id: ada.id, reveal: true }),
      recover(ada.username),
    ])
    only(outcomes, ['ok'])
    assert.ok((await openTickets(world)) <= 4)
    return 'ok'
  },

  'one token of an invite is used by four': async (world) => {
    const { link } = await world.service.operations.createInvite(
      { email: 'new@x.io', reveal: true },
      operator,
    )
    const invite_token = tokenIn(link)
    const body = { email: 'new@x.io', password: 'a rather long password', invite_token }
    const outcomes = await race(
      ['one', 'two', 'three', 'four'].map((username) => post(world, '/signup', { username, ...body })),
    )
    only(outcomes, ['ok', 'no_matching_invite'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1)
    assert.equal(await openTickets(world), 0)
    return 'once'
  },

  'an invite is sent again and deleted while it is claimed': async (world) => {
    const root = await admin(world)
    const made = await world.service.operations.createInvite({ email: 'new@x.io', reveal: true }, operator)
    const body = {
      ...{ email: 'new@x.io', username: 'newcomer', password: 'a rather long password' },
      invite_token: tokenIn(made.link),
    }
    const outcomes = await race([
      post(world, '/signup', body),
      call(world, root, 'invite_send', { invite_id: made.id, reveal: true }),
      call(world, root, 'invite_delete', { invite_id: made.id }),
    ])
    only(outcomes, ['ok', 'no_matching_invite', 'invite_not_found'])
    assert.equal(outcomes[0] === 'ok', outcomes[2] === 'invite_not_found')
    assert.equal(await openTickets(world), 0, 'no link of an invite that is gone or claimed is left')
    return outcomes.join(' / ')
  },
}

import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { send } from '../../test/helpers/http.ts'
import { openSocket, outcomeOf } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

/** Two nodes on one database; every change is made on the first, and every kind of socket is open on both. */
const operator = { via: 'test' }
// Without the regular checks, so only a signal closes anything.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
const near = await testService()
const far = await testService({
  database_url: near.databaseUrl,
  daemon_token_state: near.daemonToken,
})
const admin = await near.account({ roles: ['admin', 'keeper'] })
const stranger = await near.account()
const strangers = await Promise.all(
  [near, far].map(({ url }) => openSocket(url, { cookie: stranger.cookie })),
)
afterEach(async () => {
  for (const socket of strangers) {
    const alive = await socket.call('heartbeat')
    expect([alive.result, socket.order.filter((one) => one !== 'reply')]).toEqual([{}, []])
  }
})
afterAll(async () => {
  vi.useRealTimers()
  await far.close()
  await near.close()
})

const login = async ({ username, password }: TestAccount, cookie?: string): Promise<string> => {
  const { headers } = await send(near.url, {
    method: 'POST',
    path: '/api/account/login',
    body: { username, password },
    ...(cookie !== undefined && { headers: { cookie } }),
  })
  return String(headers['set-cookie']?.[0]?.split(';', 1))
}

/** An account with two sessions and a token, and a socket for each on both nodes. */
async function connected() {
  const account = await near.account()
  const second = await login(account)
  const token = await tokenOf(near, account)
  const carriers = { first: { cookie: account.cookie }, second: { cookie: second }, token: token.headers }
  const open = Object.entries(carriers).flatMap(([name, headers]) =>
    [near, far].map(async ({ url }) => ({ name, socket: await openSocket(url, headers) })),
  )
  const sockets = await Promise.all(open)
  const { sessions } = await account.client.account_session_list()
  const idOf = (index: number): string =>
    [...sessions].sort((a, b) => (a.created_at < b.created_at ? -1 : 1))[index]?.id as string
  return {
    account,
    token,
    second,
    firstId: idOf(0),
    secondId: idOf(1),
    /** The close codes by credential; the same on both nodes. */
    codes: async () => {
      const closed = await Promise.all(
        sockets.map(async ({ name, socket }) => [name, (await socket.closed).code] as const),
      )
      const byName = Map.groupBy(closed, ([name]) => name)
      return Object.fromEntries(
        [...byName].map(([name, all]) => [name, [...new Set(all.map(([, code]) => code))]]),
      )
    },
    /** Calls `heartbeat` on each socket of a credential, to show which are still served. */
    alive: async (name: string) => {
      const own = sockets.filter((one) => one.name === name)
      return Promise.all(own.map(async ({ socket }) => outcomeOf(await socket.call('heartbeat'))))
    },
    close: () => Promise.all(sockets.map(({ socket }) => socket.close())),
  }
}
type Connected = Awaited<ReturnType<typeof connected>>

const firstEnds = { first: [4001], second: [4006], token: [4006] }
const sessionsEnd = { first: [4001], second: [4001], token: [4006] }
const tokenEnds = { first: [4006], second: [4006], token: [4001] }
const everythingEnds = { first: [4001], second: [4001], token: [4001] }

const changes: [what: string, change: (one: Connected) => Promise<unknown>, codes: object][] = [
  [
    'account_session_revoke',
    ({ account, firstId }) => account.client.account_session_revoke({ session_id: firstId }),
    firstEnds,
  ],
  ['logout', ({ account }) => account.client.account.logout(), firstEnds],
  [
    'a session revoked by an operator',
    ({ firstId }) => near.service.operations.revokeSession({ session_id: firstId }, operator),
    firstEnds,
  ],
  [
    'admin_session_revoke',
    ({ firstId }) => admin.client.admin_session_revoke({ session_id: firstId }),
    firstEnds,
  ],
  [
    'the replacement of the session by one that the library makes',
    ({ account: { id: account_id, cookie: presented } }) =>
      near.service.sessions.create({ account_id, via: 'test', presented }),
    firstEnds,
  ],
  ['the replacement of the session by a login', ({ account }) => login(account, account.cookie), firstEnds],
  [
    'the replacement of the session by a login to another account',
    ({ account }) => login(stranger, account.cookie),
    firstEnds,
  ],
  ['account_session_revoke_all', ({ account }) => account.client.account_session_revoke_all(), sessionsEnd],
  [
    'admin_session_revoke_all',
    ({ account }) => admin.client.admin_session_revoke_all({ account_id: account.id }),
    sessionsEnd,
  ],
  [
    'account_token_revoke',
    ({ account, token }) => account.client.account_token_revoke({ token_id: token.id }),
    tokenEnds,
  ],
  ['admin_token_revoke', ({ token }) => admin.client.admin_token_revoke({ token_id: token.id }), tokenEnds],
  [
    'admin_token_revoke_all',
    ({ account }) => admin.client.admin_token_revoke_all({ account_id: account.id }),
    tokenEnds,
  ],
  [
    'a change of the password',
    ({ account }) =>
      account.client.account.password({
        current_password: account.password,
        new_password: 'another long password',
      }),
    everythingEnds,
  ],
  [
    'a password set by an operator',
    ({ account }) =>
      near.service.operations.setPassword(
        { account_id: account.id, password: 'another long password' },
        operator,
      ),
    everythingEnds,
  ],
  [
    'securing the account',
    ({ account }) => near.service.operations.secureAccount({ account_id: account.id }, operator),
    everythingEnds,
  ],
  [
    'account_delete',
    ({ account }) => account.client.account_delete({ account_id: account.id }),
    everythingEnds,
  ],
  [
    'a purge',
    ({ account }) =>
      near.service.operations.purgeAccount({ account_id: account.id, confirm: true }, operator),
    everythingEnds,
  ],
]

describe('on both nodes sockets close', () => {
  it.each(changes)('after %s: own ones 4001, others of the account 4006', async (_what, change, codes) => {
    const one = await connected()
    await change(one)
    expect(await one.codes()).toEqual(codes)
  })

  it('after the end of another session that is told together with an older end of all: 4006', async () => {
    const account = await near.account()
    const socket = await openSocket(far.url, { cookie: account.cookie })
    const ended = (ids: string[] | null) => ({
      ...{ kind: 'credentials' as const, account_id: account.id },
      ended: [{ type: 'session' as const, ids }],
    })
    const closings = [ended(null), ended(['another session'])]
    near.service.app.hub.publish({ notifications: [], closings, wroteAudit: false })
    expect((await socket.closed).code).toBe(4006)
  })

  it('after the eviction of the oldest session by the sixth login', async () => {
    const one = await connected()
    for (let logins = 2; logins < 6; logins++) await login(one.account)
    expect(await one.codes()).toEqual(firstEnds)
    const again = await openSocket(far.url, { cookie: one.second })
    expect(outcomeOf(await again.call('account_session_list'))).toBe('ok')
    await again.close()
  })

  it('after the eviction of the oldest token', async () => {
    const one = await connected()
    for (let tokens = 1; tokens < 11; tokens++) await tokenOf(near, one.account)
    expect(await one.codes()).toEqual(tokenEnds)
  })

  it('after a transfer of the keeper: those of the daemon token alone', async () => {
    const heir = await near.account()
    const headers = { 'x-daemon-token': near.daemonToken.current }
    const daemons = await Promise.all([near, far].map(({ url }) => openSocket(url, headers)))
    const sessions = await Promise.all(
      [near, far].map(({ url }) => openSocket(url, { cookie: admin.cookie })),
    )
    await near.service.operations.transferKeeper({ actor_id: heir.actor_id }, operator)
    expect(await Promise.all(daemons.map(({ closed }) => closed))).toEqual(
      Array(2).fill({ code: 4001, reason: 'revoked' }),
    )
    for (const socket of sessions) expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
    // Its closing shows that the other node has heard of the transfer back, which would end sockets opened later.
    const last = await openSocket(far.url, headers)
    await near.service.operations.transferKeeper({ actor_id: admin.actor_id }, operator)
    await last.closed
    await Promise.all(sessions.map((socket) => socket.close()))
  })

  it('after a change of the keeper’s password: a daemon socket 4006', async () => {
    const daemon = await openSocket(far.url, { 'x-daemon-token': near.daemonToken.current })
    const { id: account_id } = admin
    await near.service.operations.setPassword({ account_id, password: 'another long password' }, operator)
    expect(await daemon.closed).toEqual({ code: 4006, reason: 'credentials changed' })
    admin.client = near.client(await login({ ...admin, password: 'another long password' }))
  })
})

/** Changes that close no socket; a later closing proves that none came before. */
const harmless: [what: string, change: (one: Connected) => Promise<unknown>][] = [
  [
    'the revocation of a session of another account',
    ({ firstId }) => stranger.client.account_session_revoke({ session_id: firstId }),
  ],
  [
    'the end of all tokens where there are none',
    async ({ account }) => {
      const none = await near.account()
      await admin.client.admin_token_revoke_all({ account_id: none.id })
      return account
    },
  ],
  [
    'roles that come and go',
    async ({ account }) => {
      await near.roleGrant({ actor_id: account.actor_id, role: 'admin' })
      const revoked = { actor_id: account.actor_id, role: 'admin' }
      return near.service.operations.revokeRoleEverywhere(revoked, operator)
    },
  ],
  ['settings and cells', ({ account }) => account.client.cell_create({ data: {} })],
]

describe('sockets stay', () => {
  it.each(harmless)('after %s', async (_what, change) => {
    const one = await connected()
    await change(one)
    const { account, token } = one
    await account.client.account_token_revoke({ token_id: token.id })
    expect(await one.codes()).toEqual(tokenEnds)
  })

  it('after the removal of their actor; the next message that needs it is refused', async () => {
    const one = await near.account()
    const second = await near.actor(one.id, 'second')
    const socket = await openSocket(far.url, { cookie: one.cookie }, `/api/ws?acting=${second}`)
    await near.service.operations.removeActor({ actor_id: second }, operator)
    expect(outcomeOf(await socket.call('cell_create', { data: {} }))).toBe('-32602 actor_not_on_account')
    expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
    await socket.close()
  })
})

describe('the expiry of a credential', () => {
  it('closes its sockets with 4005 and leaves the others; one 30 days away closes nothing', async () => {
    const one = await near.account()
    const second = await login(one)
    await near.service.app.db.run(sql`
      update auth_session set expires_at = now() + interval '1 s'
      where id = (select id from auth_session where account_id = ${one.id}::uuid order by created_at limit 1)`)
    const expiring = await openSocket(far.url, { cookie: one.cookie })
    const other = await openSocket(far.url, { cookie: second })
    expect(await expiring.closed).toEqual({ code: 4005, reason: 'credential expired' })
    expect(outcomeOf(await other.call('account_verify'))).toBe('ok')
    await other.close()
  })
})

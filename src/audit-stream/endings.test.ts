import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { type OpenStream, openStream, type StreamBlock } from '../../test/helpers/audit-streams.ts'
import { clientWith, daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { Client } from '../client/client.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const by = { via: 'cli' }
const test = await serviceForFile({ audit_stream: true, max_sessions: 2, max_tokens: 2 })
const watcher = await test.account({ roles: ['admin'] })

type Kind = 'first' | 'second' | 'token'
type World = {
  account: TestAccount & { grant_id: string }
  second: { cookie: string; client: Client }
  token: Awaited<ReturnType<typeof tokenOf>>
  streams: Record<Kind, OpenStream>
}

/** An admin with two sessions and a token, and a stream for each. */
async function world(node: Pick<TestService, 'url'> = test): Promise<World> {
  const made = await test.account()
  const grant = await test.roleGrant({ actor_id: made.actor_id, role: 'admin' })
  const account = { ...made, grant_id: grant.role_grant_id }
  const { username, password } = account
  const { cookie } = (await send(test, 'POST /login', { body: { username, password } })) as { cookie: string }
  const token = await tokenOf(test, account)
  const streams = {
    first: await follow(node, { cookie: account.cookie }),
    second: await follow(node, { cookie }),
    token: await follow(node, token.headers),
  }
  return { account, second: { cookie, client: clientWith(test, { cookie }) }, token, streams }
}

async function follow(node: Pick<TestService, 'url'>, headers: Record<string, string>): Promise<OpenStream> {
  const stream = await openStream(node, headers)
  onTestFinished(() => stream.leave())
  expect(stream.status).toBe(200)
  return stream
}

/** The end of a closed stream: the types of its rows, and the reason. */
async function endOf(stream: OpenStream): Promise<{ rows: unknown[]; reason: unknown }> {
  const blocks = await stream.rest()
  const close = blocks.at(-1) as StreamBlock
  expect(close).toMatchObject({ event: 'close', id: -1, data: { reason: expect.any(String) } })
  expect(stream.text().endsWith(`event: close\ndata: ${JSON.stringify(close.data)}\n\n`)).toBe(true)
  return { rows: blocks.slice(0, -1).map(({ data }) => data.method), reason: close.data.reason }
}

/** Asserts that a stream is still open: a row written now reaches it, without a close block before. */
async function isOpen(stream: OpenStream): Promise<void> {
  const { cell } = await watcher.client.cell_create({ data: {} })
  for (;;) {
    const [block] = (await stream.take(1)) as [StreamBlock]
    expect(block.event).toBe('message')
    const { metadata } = block.data.params as { metadata: { cell_id?: string } | null }
    if (metadata?.cell_id === cell.id) return
  }
}

async function firstSession({ id }: TestAccount): Promise<string> {
  const row = await test.service.app.db.first<{ id: string }>(sql`
    select id from auth_session where account_id = ${id}::uuid order by created_at limit 1`)
  return row?.id as string
}

const revokeAdmin = ({ actor_id, grant_id }: World['account']) =>
  watcher.client.role_grant_revoke({ actor_id, role_grant_id: grant_id })

const login = ({ username, password }: TestAccount) =>
  send(test, 'POST /login', { body: { username, password } })

type Case = {
  act(world: World): Promise<unknown>
  row: string
  ends: Kind[]
  reason?: string
}
const all: Kind[] = ['first', 'second', 'token']

describe('a stream ends with its authority, behind the row that took it, and no other stream does', () => {
  const cases: Record<string, Case> = {
    logout: {
      act: ({ account }) => send(test, 'POST /logout', { cookie: account.cookie }),
      row: 'logout',
      ends: ['first'],
    },
    'the session revoked': {
      act: async ({ account, second }) => {
        const session_id = await firstSession(account)
        expect(await second.client.account_session_revoke({ session_id })).toMatchObject({ revoked: true })
      },
      row: 'session_revoke',
      ends: ['first'],
    },
    'the session evicted by a login over the cap': {
      act: ({ account }) => login(account),
      row: 'session_revoke',
      ends: ['first'],
    },
    'all own sessions revoked': {
      act: ({ account }) => account.client.account_session_revoke_all(),
      row: 'session_revoke_all',
      ends: ['first', 'second'],
    },
    'all sessions revoked by an admin': {
      act: ({ account }) => watcher.client.admin_session_revoke_all({ account_id: account.id }),
      row: 'session_revoke_all',
      ends: ['first', 'second'],
    },
    'the token revoked': {
      act: ({ account, token }) => account.client.account_token_revoke({ token_id: token.id }),
      row: 'token_revoke',
      ends: ['token'],
    },
    'the token evicted by one over the cap': {
      act: async ({ account }) => {
        await tokenOf(test, account)
        await tokenOf(test, account)
      },
      row: 'token_revoke',
      ends: ['token'],
    },
    'all tokens revoked by an admin': {
      act: ({ account }) => watcher.client.admin_token_revoke_all({ account_id: account.id }),
      row: 'token_revoke_all',
      ends: ['token'],
    },
    'the password changed': {
      act: ({ account, second }) =>
        send(test, 'POST /password', {
          cookie: second.cookie,
          body: { current_password: account.password, new_password: 'another long password' },
        }),
      row: 'password_change',
      ends: all,
    },
    'the account deleted': {
      act: ({ account }) => account.client.account_delete({}),
      row: 'account_delete',
      ends: all,
    },
    'the account purged': {
      act: ({ account }) =>
        test.service.operations.purgeAccount({ account_id: account.id, confirm: true }, by),
      row: 'account_purge',
      ends: all,
    },
    'the admin role revoked': {
      act: ({ account }) => revokeAdmin(account),
      row: 'role_grant_revoke',
      ends: all,
      reason: 'role_lost',
    },
    'the actor removed': {
      act: async ({ account }) => {
        await test.actor(account.id, 'stays')
        await test.service.operations.removeActor({ actor_id: account.actor_id }, by)
      },
      row: 'actor_delete',
      ends: all,
      reason: 'role_lost',
    },
  }
  it.each(Object.entries(cases))('%s', async (_name, { act, row, ends, reason = 'revoked' }) => {
    const made = await world()
    const others = [await follow(test, { cookie: watcher.cookie })]
    await act(made)
    for (const kind of ends) {
      const end = await endOf(made.streams[kind])
      expect(end).toMatchObject({ reason, rows: expect.arrayContaining([row]) })
    }
    for (const kind of all) if (!ends.includes(kind)) others.push(made.streams[kind])
    for (const other of others) await isOpen(other)
  })

  it('the admin role of an actor with many others, whose own calls hold all its places', async () => {
    const { account, streams } = await world()
    const { db, gate } = test.service.app
    await db.run(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select ${account.actor_id}::uuid, 'member', 'team', gen_random_uuid() from generate_series(1, 100)`)
    const held = Promise.withResolvers<void>()
    onTestFinished(() => held.resolve())
    for (let n = 0; n < 8; n++) void gate.run(account.id, () => held.promise)
    await revokeAdmin(account)
    expect(await endOf(streams.first)).toMatchObject({ reason: 'role_lost' })
    // The regular check, which would end it too, comes later.
  }, 10_000)

  it('what ends nothing closes nothing: a foreign session, a role that is not admin', async () => {
    const { account, streams } = await world()
    const session_id = await firstSession(watcher)
    expect(await account.client.account_session_revoke({ session_id })).toMatchObject({ revoked: false })
    await test.roleGrant({ actor_id: account.actor_id, role: 'keeper' })
    await isOpen(streams.first)
  })

  it('the keeper transferred: what the daemon token opened', async () => {
    const [from, to] = [await test.account({ roles: ['keeper', 'admin'] }), await test.account()]
    const daemon = await follow(test, daemonHeaders(test))
    const session = await follow(test, { cookie: from.cookie })
    await test.service.operations.transferKeeper({ actor_id: to.actor_id }, by)
    expect(await endOf(daemon)).toMatchObject({ reason: 'revoked' })
    await isOpen(session)
  })
})

describe('a stream ends when its authority expires', () => {
  const soon = sql`now() + interval '3 seconds'`

  it('the session: expired', async () => {
    const account = await test.account({ roles: ['admin'] })
    const { db } = test.service.app
    await db.run(sql`update auth_session set expires_at = ${soon} where account_id = ${account.id}::uuid`)
    expect(await endOf(await follow(test, { cookie: account.cookie }))).toMatchObject({ reason: 'expired' })
  })

  it('the token: expired', async () => {
    const account = await test.account({ roles: ['admin'] })
    const { id, headers } = await tokenOf(test, account)
    await test.service.app.db.run(sql`update api_token set expires_at = ${soon} where id = ${id}`)
    expect(await endOf(await follow(test, headers))).toMatchObject({ reason: 'expired' })
  })

  it('the admin grant: role_lost; one extended meanwhile goes on', async () => {
    const [short, longer] = [
      await test.account({ roles: ['admin'] }),
      await test.account({ roles: ['admin'] }),
    ]
    const { db } = test.service.app
    const expire = ({ actor_id }: TestAccount, at = soon) =>
      db.run(sql`update role_grant set expires_at = ${at} where actor_id = ${actor_id}::uuid`)
    await expire(short)
    await expire(longer)
    const streams = [
      await follow(test, { cookie: short.cookie }),
      await follow(test, { cookie: longer.cookie }),
    ]
    await expire(longer, sql`now() + interval '40 days'`)
    expect(await endOf(streams[0] as OpenStream)).toMatchObject({ reason: 'role_lost' })
    await isOpen(streams[1] as OpenStream)
  })

  it('a session and a grant of months are no timer that fires at once', async () => {
    const account = await test.account({ roles: ['admin'] })
    await test.service.app.db.run(sql`
      update role_grant set expires_at = now() + interval '60 days' where actor_id = ${account.actor_id}::uuid`)
    await test.service.app.db.run(sql`
      update auth_session set expires_at = now() + interval '60 days' where account_id = ${account.id}::uuid`)
    await isOpen(await follow(test, { cookie: account.cookie }))
  })
})

describe('a stream whose end no signal told', () => {
  it('ends at the next regular check', async () => {
    const { account, streams } = await world()
    const { db, hub } = test.service.app
    await db.run(sql`delete from api_token where account_id = ${account.id}::uuid`)
    await db.run(sql`
      update role_grant set revoked_at = now() where actor_id = ${account.actor_id}::uuid and role = 'admin'`)
    await hub.check()
    expect(await endOf(streams.token)).toMatchObject({ reason: 'revoked' })
    expect(await endOf(streams.first)).toMatchObject({ reason: 'role_lost' })
  })
})

describe('a stream whose authority ended while its node stood still', () => {
  it('sends nothing more', async () => {
    // A node of its own: the others would wait later, for as long as this clock was ahead.
    await using node = await testService({ audit_stream: true, database_url: test.databaseUrl })
    const { account, streams } = await world(node)
    const other = await follow(node, { cookie: watcher.cookie })
    const { db } = test.service.app
    await db.run(sql`delete from api_token where account_id = ${account.id}::uuid`)
    await db.run(sql`
      update role_grant set revoked_at = now() where actor_id = ${account.actor_id}::uuid and role = 'admin'`)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000)
    onTestFinished(() => clock.mockRestore())
    await isOpen(other)
    expect(await endOf(streams.token)).toEqual({ reason: 'revoked', rows: [] })
    expect(await endOf(streams.first)).toEqual({ reason: 'role_lost', rows: [] })
  })
})

describe('a stream that opens while its authority ends', () => {
  it('is refused or closed, whichever comes first', async () => {
    const account = await test.account({ roles: ['admin'] })
    for (let round = 0; round < 25; round++) {
      const { headers, id } = await tokenOf(test, account)
      const [stream, revoked] = await Promise.all([
        openStream(test, headers),
        account.client.account_token_revoke({ token_id: id }),
      ])
      expect(revoked).toMatchObject({ revoked: true })
      if (stream.status === 200) expect(await endOf(stream)).toMatchObject({ reason: 'revoked' })
      else expect(stream.status).toBe(401)
    }
  })
})

describe('a stream on another node', () => {
  it('ends as one on the node that took its authority', async () => {
    const node = await testService({ audit_stream: true, database_url: test.databaseUrl })
    onTestFinished(() => node.close())
    const { account, streams } = await world(node)
    await revokeAdmin(account)
    for (const stream of Object.values(streams))
      expect(await endOf(stream)).toMatchObject({
        reason: 'role_lost',
        rows: expect.arrayContaining(['role_grant_revoke']),
      })
  })
})

import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { lockAccounts } from '../accounts/locks.ts'
import type { Actions } from '../actions.ts'
import { sentBack } from '../auth/cookie.ts'
import { type CellGrant, type Principal, upsertCellGrant } from '../cells/grants/grants.ts'
import { type Client, createClient } from '../client/client.ts'
import { operate } from '../core/operate.ts'
import { createService, type ServiceOptions } from '../create-service.ts'
import { defaultSchema } from '../db/servers/locate.ts'
import { createNodeServer } from '../http/node.ts'
import type { Deliver, Message } from '../registry/messages.ts'
import { type Conferred, conferGrant, type GrantInput } from '../roles/grants.ts'
import type { Service } from '../service.ts'
import { startSession } from '../sessions/sessions.ts'
import { cloneDatabase, sharedCluster, toUrl } from './cluster.ts'
import { errorLog, resetService, type TestDaemonToken, testDaemonToken } from './parts.ts'

/** Cheap hashing, no minimum time for failures, a free port, and a log of exceptions only. */
const testDefaults = {
  env: 'development',
  port: 0,
  argon2: '8,1,1',
  login_fail_floor_ms: 0,
  login_fail_jitter_ms: 0,
  cookie_keys: ['test-key-test-key-test-key-test-key-1'],
  secret_keys: ['test-secret-test-secret-test-secret-1'],
  heartbeat: false,
} as const

/** With `database_url`, such as the `databaseUrl` of another test service, it is another node on that database. */
export type TestOptions = ServiceOptions

export type TestAccount<A = Actions> = {
  id: string
  /** Its first actor. */
  actor_id: string
  username: string
  password: string
  /** The `Cookie` header of its session. */
  cookie: string
  /** A client that is signed in as this account. */
  client: Client<A>
}

export type TestService<A = Actions> = {
  service: Service<A>
  /** Its URL, on a free port of the loopback address. */
  url: string
  databaseUrl: string
  /** A client with the given cookie, by default without a credential. */
  client(cookie?: string): Client<A>
  /** The daemon tokens of the service; `rotate()` makes a new one and keeps the previous one valid. */
  daemonToken: TestDaemonToken
  /** A client with the given daemon token, by default the current one. */
  daemonClient(token?: string): Client<A>
  /** An account with one actor, signed in; `roles` are granted globally. */
  account(input?: {
    username?: string | undefined
    password?: string | undefined
    email?: string | undefined
    roles?: string[] | undefined
  }): Promise<TestAccount<A>>
  /**
   * Signs in an existing account without its password, limits or audit rows; `second_factor` makes the session strong.
   */
  signIn(account_id: string, options?: { second_factor?: boolean | undefined }): Promise<TestSession<A>>
  sessions: {
    /** The same as `signIn`. */
    create(account_id: string): Promise<TestSession<A>>
  }
  /** Messages that the `deliver` of the options has accepted, oldest first. */
  messages: Message[]
  /** Adds an actor to an account. */
  actor(account_id: string, name: string): Promise<string>
  /** Grants any role, keeper included and whatever its grant paths, with the function behind `grantRole`. */
  roleGrant(grant: GrantInput): Promise<Conferred>
  /** Shares a cell with a principal, with the function behind `cell_grant_create`. */
  cellGrant(cell_id: string, level: 'viewer' | 'editor', principal: Principal): Promise<CellGrant>
  /**
   * Empties every table of the service, and those of yours that reference one, for the next test. Open sockets and
   * streams end, limiters are cleared, and settings that calls have changed return to their defaults. The numbers of
   * the audit log continue.
   */
  reset(): Promise<void>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type TestSession<A = Actions> = {
  session_id: string
  /** The `Cookie` header. */
  cookie: string
  /** A client with this session. */
  client: Client<A>
}

/** Starts a service on its own database, a copy of a migrated template that takes milliseconds to make. */
export async function testService<A = Actions>(options: TestOptions = {}): Promise<TestService<A>> {
  const { databaseUrl, drop } = await databaseOf(options)
  const daemonToken = testDaemonToken()
  const { deliver } = options
  const messages: Message[] = []
  const recording: Deliver = async (message, about) => {
    await deliver?.(message, about)
    messages.push(message)
  }
  const service = await createService({
    log: errorLog,
    ...testDefaults,
    link_url: `${options.public_url ?? 'http://localhost'}/admin/link`,
    daemon_token_state: daemonToken,
    check_outputs: true,
    ...options,
    ...(deliver && { deliver: recording }),
    database_url: databaseUrl,
  }).catch(async (error) => {
    await drop()
    throw error
  })
  const { app } = service
  const { rpc_path: rpcPath, account_path: accountPath } = app.config
  const { server } = createNodeServer(service.handle, app.config, service.upgrade)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clientWith = (headers: Record<string, string>): Client<A> =>
    createClient<A>({ url, jar: true, rpcPath, accountPath, headers })
  const client = (cookie?: string): Client<A> => clientWith(cookie === undefined ? {} : { cookie })
  let made = 0
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await service.close()
    await drop()
  }

  const test: TestService<A> = {
    service: service as unknown as Service<A>,
    url,
    databaseUrl,
    client,
    daemonToken,
    daemonClient: (token = daemonToken.current) => clientWith({ 'x-daemon-token': token }),
    account: async ({ username = `user${++made}`, password = 'a long password', email, roles = [] } = {}) => {
      const { account, actor } = await service.operations.createAccount(
        { username, password, email: email ?? null },
        operator,
      )
      for (const role of roles) await test.roleGrant({ actor_id: actor.id, role })
      const { cookie, client } = await test.signIn(account.id)
      return { id: account.id, actor_id: actor.id, username, password, cookie, client }
    },
    signIn: async (account_id, { second_factor = false } = {}) => {
      const { session_id, cookie: set_cookie } = await oneByOne(
        app.db.transaction(async (db) => {
          await lockAccounts(db, [account_id])
          return await startSession(app, db, {
            account_id,
            proof: { methods: ['library'], strong: second_factor },
            presented: { cookie: { state: 'none' } },
          })
        }),
      )
      const cookie = sentBack(set_cookie)
      return { session_id, cookie, client: client(cookie) }
    },
    sessions: { create: (account_id) => test.signIn(account_id) },
    messages,
    actor: async (account_id, name) =>
      (await oneByOne(service.operations.addActor({ account_id, name }, operator))).id,
    roleGrant: (grant) =>
      oneByOne(
        operate(app, 'role_grant_create', operator, ({ db, audit }) =>
          conferGrant(db, audit, grant, { source: 'library', via }),
        ),
      ),
    cellGrant: (cell_id, level, principal) =>
      oneByOne(
        operate(app, 'cell_grant_create', operator, ({ db, audit }) =>
          upsertCellGrant(db, audit, { cell_id, level, principal, granted_by: null }, { via }),
        ),
      ),
    reset: async () => {
      await resetService(app)
      messages.length = 0
    },
    close: () => {
      closed ??= close()
      return closed
    },
    [Symbol.asyncDispose]: () => test.close(),
  }
  return test
}

async function databaseOf({ database_url }: TestOptions) {
  if (database_url) return { databaseUrl: database_url, drop: async () => {} }
  const cluster = await sharedCluster()
  const { connection, drop } = await cloneDatabase(cluster.connection, cluster.template)
  return { databaseUrl: toUrl({ ...connection, schema: defaultSchema }), drop }
}

/** Times are stored in milliseconds: the next object gets a later one, so that lists show both in this order. */
async function oneByOne<T>(making: Promise<T>): Promise<T> {
  const made = await making
  await setTimeout(2)
  return made
}

/** The `via` of audit rows that the kit itself causes. */
const via = 'testing'

const operator = { via }

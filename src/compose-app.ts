import { randomBytes } from 'node:crypto'
import { fold } from './accounts/formats.ts'
import { actions } from './actions.ts'
import { createAuditWriter } from './audit/write.ts'
import { createBlocklist } from './auth/blocklist.ts'
import { createBootstrap } from './auth/bootstrap-token.ts'
import { createCallerReader } from './auth/caller.ts'
import { createSessionCookie } from './auth/cookie.ts'
import { createDaemonTokens, type DaemonTokenState } from './auth/daemon-token.ts'
import { createFlowCookie } from './auth/flow-cookie.ts'
import { onPriorityKept } from './auth/hash-threads.ts'
import { createKeyRing } from './auth/key-ring.ts'
import { createLastUsed } from './auth/last-used.ts'
import { createPasswords } from './auth/password.ts'
import type { ParsedConfig } from './config/config.ts'
import type { App } from './core/app.ts'
import { createCursors } from './core/cursor.ts'
import type { Method } from './core/method.ts'
import { createOutputs } from './core/outputs.ts'
import { createTally } from './core/tally.ts'
import { wireMethods } from './core/wired-methods.ts'
import { openDatabase } from './db/db.ts'
import type { Step } from './db/migration/steps.ts'
import { type Connection, replicasOf } from './db/servers/connection.ts'
import { locateMigrated } from './db/servers/locate.ts'
import { createReadiness } from './db/servers/ready.ts'
import { type Disk, unknownDisk } from './embedded/disk.ts'
import { createRefusal, StartError } from './errors.ts'
import { Gate } from './limits/gate.ts'
import { createLimiters, limiterStore } from './limits/limiters.ts'
import type { Log } from './log/log.ts'
import type { MetricRegistry } from './observe/meter.ts'
import { noObserver, type Observer } from './observe/observer.ts'
import type { TraceApi } from './observe/tracer.ts'
import { createRelyingParty } from './oidc/relying-party.ts'
import { type Bus, createBus } from './realtime/bus.ts'
import { createHub } from './realtime/hub.ts'
import { createRegistry } from './registry/registry.ts'
import { createSealing } from './sealing/sealing.ts'

/** What a service needs besides its configuration. */
export type Deps = {
  connection: Connection
  cookieKeys: readonly string[]
  /** Left out or null: nothing can be sealed. */
  secretKeys?: readonly string[] | null
  log: Log
  onStatement?: (text: string) => void
  daemonToken?: DaemonTokenState
  observer?: Observer
  metrics?: MetricRegistry
  traces?: TraceApi
  checkOutputs?: boolean
  /** The disk of the embedded database. */
  disk?: Disk
  /** False: this process is no node of its database until it calls `join`. */
  heartbeat?: boolean
  /** Aborting it ends a migration, or the wait for one of another process, and with it the start. */
  stop?: AbortSignal
}

/** The roles, events and methods of a configuration. Throws StartError if its declarations contradict each other. */
export function declared({ config, declarations }: ParsedConfig) {
  const registry = declaredIn(config.config, () => createRegistry(declarations))
  const own = declarations.actions ?? {}
  const wired = declaredIn(config.config, () => {
    const twice = Object.keys(own).find((method) => Object.hasOwn(actions, method))
    if (twice)
      throw new StartError(
        'invalid_action',
        `Action ${twice}: a built-in method has this name. Rename yours.`,
        78,
      )
    return wireMethods({ ...(actions as Record<string, Method>), ...own }, registry, config, ['rpc.discover'])
  })
  return { registry, wired }
}

/** The parts that a service and an operator command share. It serves no requests and runs no periodic work. */
export async function composeApp(
  parsed: ParsedConfig,
  deps: Deps,
  migrations: 'auto' | 'check',
): Promise<{ app: App; bus: Bus; connection: Connection; pending: Step[]; close(): Promise<void> }> {
  const { config, declarations } = parsed
  const { log, observer = noObserver } = deps
  const { database_pool_max: poolMax, argon2, require_second_factor: strongRoles } = config
  const { registry, wired } = declared(parsed)

  const { connection, pending } = await locateMigrated(deps.connection, config.database_schema, {
    mode: migrations,
    log,
    ...(deps.stop && { signal: deps.stop }),
  })
  const warnings: App['warnings'] = new Set()
  const db = openDatabase({
    connection,
    poolMax,
    statementTimeoutMs: config.statement_timeout_ms,
    waitMs: config.database_wait_ms,
    hasNames: config.database_statements === 'named',
    onError: (error, what, event = 'db_lost') => log.error({ event, err: error }, what),
    ...(deps.onStatement && { onStatement: deps.onStatement }),
    observer,
    replicas: { ...replicasOf(config, connection), warnings },
  })
  const keyRing = createKeyRing(deps.cookieKeys)
  const cookieOptions = { secure: config.cookie_secure, hostPrefix: config.cookie_host_prefix }
  const lastUsed = createLastUsed(db, log)
  onPriorityKept((reason) => log.info({ err: reason }, 'hashing threads keep the priority of the process'))
  const node = randomBytes(8).toString('hex')
  const bus = createBus({ connection, session: db.primary.session, log, node, observer, warnings })
  const gate = new Gate({ perCaller: config.max_caller_connections, reads: Math.ceil(poolMax / 2) })
  const daemon = createDaemonTokens({ state: deps.daemonToken, path: config.daemon_token_file }, log)
  const app: App = {
    config,
    log,
    observer,
    db,
    readiness: createReadiness(db, { log, warnings }),
    disk: deps.disk ?? unknownDisk,
    registry,
    actions: wired,
    hooks: declarations.hooks ?? {},
    callers: createCallerReader(db, {
      daemon,
      inTurn: (account_id, read) => gate.read(account_id, read),
      onTokenUse: lastUsed.stamp,
      strongRoles,
      observer,
    }),
    lastUsed,
    audit: createAuditWriter(db, log, registry.events),
    hub: createHub({
      db,
      log,
      connectionsMax: config.max_connections,
      socketsPerAccount: config.ws_per_account,
      send: bus.send,
      strongRoles,
      observer,
      holdsDaemon: async (token) => (await daemon?.holds(token)) === true,
    }),
    passwords: createPasswords({
      concurrency: config.hash_concurrency,
      queueMax: config.hash_queue_max,
      argon2: { memory: argon2.memoryCost, time: argon2.timeCost, parallelism: argon2.parallelism },
      observer,
    }),
    blocklist: createBlocklist(config.password_blocklist, fold),
    keyRing,
    sealing: deps.secretKeys ? createSealing(deps.secretKeys) : null,
    sessionCookie: createSessionCookie(keyRing, { ...cookieOptions, now: db.clock.now }),
    flowCookie: createFlowCookie(cookieOptions),
    cursors: createCursors(keyRing.derive('cursor')),
    limiters: createLimiters(config, limiterStore(config, db, log), observer),
    fail: createRefusal(registry.reasons),
    outputs: createOutputs(deps.checkOutputs ?? config.env === 'development', log, observer),
    gate,
    tally: createTally(),
    warnings,
    bus,
    node: { id: node, name: config.node_name, phase: 'serving', isDrained: false, isBehind: false },
    bootstrap: createBootstrap(config, db, log),
    documents: new Map(),
    authorizeOffer: declarations.authorize_offer,
    deliver: declarations.deliver,
    oidc: createRelyingParty(config.oidc_redirect_url ?? '', log, db.clock),
    outbox: { wake: () => {} },
  }
  const close = async (): Promise<void> => {
    app.readiness.end()
    await Promise.all([lastUsed.flush(), app.audit.flush(), bus.close()])
    await db.close()
  }
  return { app, bus, connection, pending, close }
}

/** Adds the config file to the message when one of its declarations is invalid. */
function declaredIn<T>(file: string | null, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (file === null || !(error instanceof StartError)) throw error
    throw new StartError(error.reason, `${error.message} (in ${file})`, error.exitCode)
  }
}

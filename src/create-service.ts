import type { Actions } from './actions.ts'
import type { DaemonTokenState } from './auth/daemon-token.ts'
import { openBacking } from './backing.ts'
import { ConfigError, type ConfigOptions, resolveOptions } from './config/config.ts'
import { StartError } from './errors.ts'
import { type Log, openLog, sturdy } from './log/log.ts'
import type { MetricRegistry } from './observe/meter.ts'
import type { TraceApi } from './observe/tracer.ts'
import { composeService, type Service } from './service.ts'

export type ServiceOptions = ConfigOptions & {
  log?: Log | undefined
  /** Called with the text of every SQL statement, for tracing and for tests that count statements. */
  onStatement?: ((text: string) => void) | undefined
  /** A daemon token that acts as the keeper, besides that of `daemon_token_file`; the test kit makes one. */
  daemon_token_state?: DaemonTokenState | undefined
  /**
   * True: checks every result against its declared output; a mismatch is answered with `internal_error`. This is
   * the default in development. False: checks a sample, and logs the first mismatch of each method.
   */
  check_outputs?: boolean | undefined
  /**
   * False: this process is not listed among the nodes of its database, as suits a script or a function that lives for
   * one request. By default it is listed once it has run for 5 seconds.
   */
  heartbeat?: boolean | undefined
  /** Your registry of `prom-client`, such as `register`: it gets the metrics of this service until it is closed. */
  metrics?: MetricRegistry | undefined
  /** The module `@opentelemetry/api`, set up by your application: requests, calls and statements become spans. */
  traces?: TraceApi | undefined
}

/**
 * Creates a service from options: the settings of docs/configuration.md in lower case without the prefix, and
 * roles, hooks and actions. Needs `database_url` and `cookie_keys`, or `data_dir`, where it runs an embedded
 * PostgreSQL and keeps the keys. Reads no environment variables.
 */
export async function createService<A extends Record<string, unknown> = Record<never, never>>(
  options: ServiceOptions & { actions?: A | undefined },
): Promise<Service<Actions & A>> {
  requireNode()
  const {
    log: own,
    onStatement,
    daemon_token_state,
    check_outputs,
    heartbeat = true,
    metrics,
    traces,
    ...settings
    // Callers without types may leave them out; what is missing is named below.
  } = options ?? {}
  checkParts({ log: own, onStatement, check_outputs, heartbeat, metrics })
  const loaded = resolveOptions(settings)
  if (loaded.config.database_url === null && loaded.sources.data_dir === 'default')
    throw new StartError(
      'configuration',
      'createService needs database_url or, for an embedded PostgreSQL, data_dir.',
      78,
    )
  const log = own ? sturdy(own) : openLog(loaded.config.log_level).log
  let service: Service | undefined
  const { parsed, close, ...backing } = await openBacking(loaded, {
    log,
    onNotice: (text) => log.warn({ event: 'configuration' }, text),
    onLost: (error) => {
      log.error(
        { event: 'data_dir_lost', err: error },
        'another process has taken over the data dir; every request is refused',
      )
      service?.leave('draining')
    },
  })
  try {
    service = await composeService(parsed, {
      ...backing,
      log,
      heartbeat,
      ...(onStatement && { onStatement }),
      ...(daemon_token_state && { daemonToken: daemon_token_state }),
      ...(metrics && { metrics }),
      ...(traces && { traces }),
      ...(check_outputs !== undefined && { checkOutputs: check_outputs }),
    })
  } catch (error) {
    await close()
    throw error
  }
  const closeService = service.close
  let closed: Promise<void> | undefined
  const closeAll = (): Promise<void> => (closed ??= closeService().finally(close))
  return { ...service, close: closeAll, [Symbol.asyncDispose]: closeAll } as Service<Actions & A>
}

/** Checked before a database is made: on an old Node, what is missing would show as a TypeError somewhere. */
function requireNode(): void {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major < 22 || (major === 22 && minor < 18))
    throw new StartError('node_version', `Cellkeep needs Node.js 22.18 or newer; this is ${node}.`, 1)
}

/** What is used only once something happens: a wrong one would otherwise fail then, as a bug of the service. */
function checkParts({ log, onStatement, check_outputs, heartbeat, metrics }: ServiceOptions): void {
  const has = (object: object | undefined, ...names: string[]): boolean =>
    object == null || names.every((name) => typeof object[name as never] === 'function')
  const isFlag = (value: unknown): boolean => value === undefined || typeof value === 'boolean'
  const problems = [
    !has(log, 'debug', 'info', 'warn', 'error') &&
      'log must have the methods debug, info, warn and error, as a logger of pino does',
    onStatement != null && typeof onStatement !== 'function' && 'onStatement must be a function',
    !isFlag(check_outputs) && 'check_outputs must be true or false',
    !isFlag(heartbeat) && 'heartbeat must be true or false',
    !has(metrics, 'registerMetric', 'removeSingleMetric') && 'metrics must be a registry of prom-client',
  ].filter((problem) => problem !== false)
  if (problems.length > 0) throw new ConfigError(problems)
}

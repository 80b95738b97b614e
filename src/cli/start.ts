import { readFile } from 'node:fs/promises'
import { openBacking } from '../backing.ts'
import type { ParsedConfig } from '../config/config.ts'
import { loadConfig } from '../config/file.ts'
import { isLoopbackHost } from '../config/ip.ts'
import { shownSettings } from '../config/show.ts'
import { StartError } from '../errors.ts'
import { aborted, type Serving, serve } from '../http/listen.ts'
import { type Log, openLog } from '../log/log.ts'
import type { Output } from '../log/output.ts'
import { composeService, type Service } from '../service.ts'
import { version } from '../wire/version.ts'
import { openRegistry, serveMetrics } from './metrics.ts'
import { type Command, wrongUsage } from './shell/command.ts'
import { onSignal } from './signals.ts'
import { openTraces } from './traces.ts'

/** `cellkeep start`: runs the server until a signal stops it. */
export const start: Command = {
  name: 'start',
  usage: 'start',
  summary: 'Run the server, on an embedded PostgreSQL unless CELLKEEP_DATABASE_URL names another.',
  details:
    'Settings are CELLKEEP_* variables or keys of cellkeep.config.ts; `cellkeep config` prints them.\n\nExample:\n  CELLKEEP_PORT=8080 cellkeep start',
  async run(args, io) {
    if (args.length > 0) {
      const message =
        '`start` takes no options: set CELLKEEP_* variables instead, such as CELLKEEP_PORT=8080.'
      return wrongUsage(start, args, io, message)
    }
    const loaded = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })
    const traces = openTraces(io.env)
    const { log_level, log_format, node_name: node } = loaded.config
    const { log, out } = openLog(log_level, log_format, { node, ...(traces && { trace: traces.ids }) })
    const stack = new CleanupStack(log)
    if (traces) stack.add('traces', traces.close)
    const stopped = stopSignal(log, out)
    try {
      const { parsed, close, ...backing } = await openBacking(loaded, {
        log,
        onNotice: (text) => io.stderr.write(`${text}\n`),
        onLost: stopped.lost,
        stop: stopped.asked,
      })
      stack.add('database', close, { mustEnd: true })
      const metrics = parsed.config.metrics_port === null ? undefined : await openRegistry()
      if (metrics) stack.add('metrics', await serveMetrics(metrics, parsed.config))
      const watched = { ...(metrics && { metrics }), ...(traces && { traces: traces.api }) }
      const service = await composeService(parsed, { ...backing, log, stop: stopped.asked, ...watched })
      stack.add('service', () => service.close())
      const serving = await serve(service)
      // On a terminal the list would hide the message below it; `cellkeep config` prints it there.
      const settings = shownSettings(parsed).map((one) => [one.key, one.value])
      const isText = parsed.config.log_format === 'text'
      log.info({ version, ...(!isText && { settings: Object.fromEntries(settings) }) }, 'started')
      const message = await startMessage(service, serving, parsed)
      // The log goes out first, so that the message is the last thing on a terminal.
      await out.flush(logLimitMs)
      io.stderr.write(message)
      const exitCode = await stopped.signal
      log.info('stopping')
      await serving.leave()
      stack.limit = AbortSignal.timeout(service.app.config.shutdown_timeout_ms)
      const isAnswered = await serving.drain(stack.limit)
      const isClosed = await stack.unwind()
      if (!isAnswered || !isClosed)
        log.error(
          { event: 'shutdown_cut' },
          'the shutdown timed out; requests that were still running were cut',
        )
      log.info('stopped')
      return isAnswered && isClosed ? exitCode : 1
    } catch (error) {
      // Ctrl-C also stops the programs that a first start runs, and its migration; that is no failure to report.
      if (stopped.asked.aborted && error instanceof StartError) return 0
      throw error
    } finally {
      await stack.unwind()
      await out.flush(logLimitMs)
      out.mute()
      // Timers or sockets left by a config file or a cut request must not keep the process alive.
      setTimeout(() => process.exit(), lingerMs).unref()
    }
  },
}

/** Resolves to exit code 0 on SIGTERM, SIGINT or SIGHUP, to 75 if the data dir was lost. A second signal exits at once. */
function stopSignal(log: Log, out: Output) {
  const { promise, resolve } = Promise.withResolvers<number>()
  const asking = new AbortController()
  // The terminal was closed: stop properly, so that no database keeps running.
  process.on('SIGHUP', () => {
    if (process.stdout.isTTY) out.mute()
  })
  onSignal(() => {
    asking.abort()
    resolve(0)
  }, 1)
  // Node would open its debugger to every user of this machine. Other servers open their log anew on this signal.
  process.on('SIGUSR1', () => log.info('SIGUSR1 is ignored'))
  // A bug in the handling of a request must not end the process.
  process.on('unhandledRejection', (error) =>
    log.error({ event: 'unhandled', err: error }, 'a promise rejection was not handled'),
  )
  process.on('uncaughtException', (error) =>
    log.error({ event: 'unhandled', err: error }, 'an exception was not caught'),
  )
  return {
    signal: promise,
    asked: asking.signal,
    lost: (error: Error): void => {
      log.error({ event: 'data_dir_lost', err: error }, 'the data dir was lost to another process')
      resolve(75)
    },
  }
}

/** How long to wait for the reader of the log, which may have stopped reading. */
const logLimitMs = 1000

/** How long a stopped process may take to exit on its own. */
const lingerMs = 200

type Step = { name: string; run: () => Promise<void>; mustEnd: boolean }

/** Runs its steps last in, first out. A failing step is logged; the others still run. */
class CleanupStack {
  /** Once it aborts, steps without `mustEnd` are no longer awaited. */
  limit: AbortSignal | undefined
  readonly #steps: Step[] = []
  readonly #log: Log
  constructor(log: Log) {
    this.#log = log
  }
  add(name: string, run: () => Promise<void>, { mustEnd = false } = {}): void {
    this.#steps.push({ name, run, mustEnd })
  }
  /** False if a step was not awaited to its end. A second call does nothing. */
  async unwind(): Promise<boolean> {
    let isComplete = true
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      const { name, run, mustEnd } = step
      const ended = run().then(
        () => true,
        (error) => {
          this.#log.error({ event: 'shutdown_cut', err: error }, `closing the ${name} failed`)
          return true
        },
      )
      const isEnded = mustEnd || !this.limit ? await ended : await Promise.race([ended, aborted(this.limit)])
      isComplete &&= isEnded
    }
    return isComplete
  }
}

/** For a person at a terminal, who then need not copy the token; never in a log. */
const tokenFragment = async (path: string): Promise<string> =>
  process.stderr.isTTY ? `#token=${(await readFile(path, 'utf8')).trim()}` : ''

/** How an invite is claimed. */
const claims = {
  match: 'claimed by e-mail or username',
  code: 'claimed with the token of a link',
  verified_email: 'claimed with the token of a mailed link',
}

async function startMessage({ app }: Service, { url }: Serving, { sources }: ParsedConfig): Promise<string> {
  const { config, bootstrap } = app
  // The public URL if one is set: passkeys belong to its name, and behind a proxy people reach no other. Its default
  // may name port 0.
  const site = (sources.public_url !== 'default' && config.public_url) || url
  const lines = [
    `Cellkeep ${version} listens on ${url}`,
    `  data dir: ${config.data_dir}`,
    `  invites: ${claims[config.invite_claim]}`,
  ]
  if (config.console === 'on') lines.push(`  console: ${site}/admin`)
  if ((await bootstrap.availability()) === true) {
    lines.push(
      '',
      `  There is no account yet. Create the first one with the token in ${bootstrap.path}:`,
      '',
      ...(config.pages ? [`    ${site}/setup${await tokenFragment(bootstrap.path)}`, '', '  or', ''] : []),
      `    curl ${url}${config.account_path}/bootstrap -c cookies.txt -H 'Content-Type: application/json' \\`,
      `      -d "{\\"token\\": \\"$(cat '${bootstrap.path.replaceAll("'", `'\\''`)}')\\", \\"username\\": \\"ada\\", \\"password\\": \\"choose a long one\\"}"`,
    )
  }
  if (config.cookie_secure && isLoopbackHost(config.host))
    lines.push('', '  If a browser rejects Secure cookies over plain http, set CELLKEEP_COOKIE_SECURE=false.')
  return `${lines.join('\n')}\n\n`
}

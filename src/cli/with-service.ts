import { keptKeys } from '../auth/kept-keys.ts'
import { randomToken } from '../auth/secrets.ts'
import { placeOf } from '../backing.ts'
import { composeApp } from '../compose-app.ts'
import { type Config, type ParsedConfig, withDataDir } from '../config/config.ts'
import { loadConfig } from '../config/file.ts'
import type { App } from '../core/app.ts'
import type { Operator } from '../core/operate.ts'
import { type Connection, configured } from '../db/servers/connection.ts'
import { locate } from '../db/servers/locate.ts'
import { startEmbedded } from '../embedded/embedded.ts'
import { existingDataDir } from '../embedded/place.ts'
import { StartError } from '../errors.ts'
import { createLog, type Log } from '../log/log.ts'
import { textLines } from '../log/text.ts'
import type { CommandIo } from './shell/output.ts'
import { onSignal } from './signals.ts'

/** Recorded in the audit rows of every command. */
export const cli: Operator = { via: 'cli' }

export type Opened = { parsed: ParsedConfig; config: Config; connection: Connection; log: Log }

type DatabaseUse = {
  /** The command may create the embedded database. */
  makes?: boolean
  /** Aborted by the first signal, with its exit code as reason; the work then ends itself. */
  interrupt?: AbortController
}

/**
 * Runs a command on the configured database. An embedded one is joined if it runs, otherwise started; its last user
 * stops it, also if a signal ends the command. If it does not exist yet, only a command with `makes` creates it.
 */
export async function withDatabase<T>(
  io: CommandIo,
  work: (opened: Opened) => Promise<T>,
  { makes = false, interrupt }: DatabaseUse = {},
): Promise<T> {
  const parsed = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'command' })
  const log = createLog('warn', textLines(io.stderr))
  const { database_url, database_schema, data_dir } = parsed.config
  if (database_url !== null) {
    const connection = await locate(
      configured(database_url, parsed.config.database_direct_url),
      database_schema,
    )
    const unhook = interrupt ? onSignal((code) => interrupt.abort(code)) : () => {}
    return await work({ parsed, config: parsed.config, connection, log }).finally(unhook)
  }
  const place = placeOf(parsed)
  if (!makes && (await existingDataDir(place)) === undefined)
    throw new StartError(
      'no_database',
      `There is no database in ${data_dir} yet. \`cellkeep start\` creates one. To use another directory, set CELLKEEP_DATA_DIR; to use a PostgreSQL server, set CELLKEEP_DATABASE_URL.`,
      3,
    )
  const stopping = interrupt ?? new AbortController()
  const opening = startEmbedded({
    ...place,
    stop: stopping.signal,
    role: 'command',
    log,
    onNotice: (text) => io.stderr.write(`${text}\n`),
  })
  // A database that is not closed would keep running.
  const unhook = onSignal((code) => {
    stopping.abort(code)
    if (!interrupt)
      void opening
        .then((embedded) => embedded.close())
        .catch(() => {})
        .finally(() => process.exit(code))
  })
  try {
    const { connection: server, dataDir } = await opening
    const connection = await locate(server, database_schema)
    const moved = withDataDir(parsed, dataDir)
    return await work({ parsed: moved, config: moved.config, connection, log })
  } finally {
    await opening.then((embedded) => embedded.close()).catch(() => {})
    unhook()
  }
}

export type CommandService = { app: App }

/**
 * Runs a command with all parts of a service, without serving requests. If the schema is not that of this
 * version, the command fails with exit code 3 and writes nothing.
 */
export const withService = <T>(
  io: CommandIo,
  work: (service: CommandService) => Promise<T>,
  use?: DatabaseUse,
): Promise<T> =>
  withDatabase(
    io,
    async ({ parsed, connection, log }) => {
      const { database_url, data_dir, secret_keys } = parsed.config
      const secretKeys =
        secret_keys ?? (database_url === null ? await keptKeys(data_dir, 'secret_keys') : null)
      // Commands check no cookies: the key only signs the pagination cursors of this process.
      const deps = { connection, cookieKeys: [randomToken()], secretKeys, log }
      const { app, close } = await composeApp(parsed, deps, 'check')
      try {
        return await work({ app })
      } finally {
        await close()
      }
    },
    use,
  )

/** Reports a failure after a signal as an interruption, with the exit code of the signal. */
export const endedBy = <T>({ signal }: AbortController, what: string, work: Promise<T>): Promise<T> =>
  work.catch((error) => {
    throw signal.aborted ? new StartError('interrupted', `Interrupted; ${what}.`, signal.reason) : error
  })

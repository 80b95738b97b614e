import { keptKeys } from './auth/kept-keys.ts'
import { declared } from './compose-app.ts'
import { type ParsedConfig, withDataDir } from './config/config.ts'
import { type Connection, configured } from './db/servers/connection.ts'
import { type Disk, watchDisk } from './embedded/disk.ts'
import { startEmbedded } from './embedded/embedded.ts'
import type { StartError } from './errors.ts'
import type { Log } from './log/log.ts'

/** What a service runs on: a database, keys, and the disk of an embedded database. */
export type Backing = {
  /** Has the data dir in use, which may differ from the configured one. */
  parsed: ParsedConfig
  connection: Connection
  cookieKeys: readonly string[]
  /** Null: nothing can be sealed. */
  secretKeys: readonly string[] | null
  disk?: Disk
  /** Stops an embedded database that no other process uses. Close the service first. */
  close(): Promise<void>
}

type BackingOptions = {
  log: Log
  /** Called with one sentence for the operator. */
  onNotice(text: string): void
  /** Called if another process took over the data dir: this one must no longer serve. */
  onLost(error: StartError): void
  /** Aborting it ends the start of an embedded database. */
  stop?: AbortSignal
}

/** Where the embedded database of a configuration is, and with which programs it runs. */
export const placeOf = ({ config, sources }: ParsedConfig) => ({
  dataDir: config.data_dir,
  dataDirIsDefault: sources.data_dir === 'default',
  postgresBin: config.postgres_bin ?? undefined,
  postgresUser: config.postgres_user ?? undefined,
})

/** The configured database, else an embedded one in the data dir. */
export async function openBacking(parsed: ParsedConfig, options: BackingOptions): Promise<Backing> {
  const { database_url, data_dir, disk_reserve } = parsed.config
  if (database_url !== null) {
    const cookieKeys = parsed.config.cookie_keys ?? (await keptKeys(data_dir, 'cookie_keys'))
    const connection = configured(database_url, parsed.config.database_direct_url)
    const { secret_keys: secretKeys } = parsed.config
    return { parsed, connection, cookieKeys, secretKeys, close: async () => {} }
  }
  // Checked before a database is made: with contradictory declarations nothing could start.
  declared(parsed)
  const embedded = await startEmbedded({
    ...placeOf(parsed),
    role: 'serve',
    ...options,
  })
  const { connection, dataDir } = embedded
  let disk: Disk | undefined
  const close = async (): Promise<void> => {
    disk?.close()
    await embedded.close()
  }
  try {
    disk = disk_reserve === null ? undefined : await watchDisk(dataDir, disk_reserve, options.log)
    const cookieKeys = parsed.config.cookie_keys ?? (await keptKeys(dataDir, 'cookie_keys'))
    const secretKeys = parsed.config.secret_keys ?? (await keptKeys(dataDir, 'secret_keys'))
    const keys = { cookieKeys, secretKeys }
    return { parsed: withDataDir(parsed, dataDir), connection, ...keys, ...(disk && { disk }), close }
  } catch (error) {
    await close()
    throw error
  }
}

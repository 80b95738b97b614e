import { access, constants } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { writeBackup } from '../../backup/backup.ts'
import { requireBackup, restoreBackup } from '../../backup/restore.ts'
import type { Config, ParsedConfig } from '../../config/config.ts'
import { parseDatabaseUrl } from '../../config/database-url.ts'
import { loadConfig } from '../../config/file.ts'
import { envName } from '../../config/reading.ts'
import { type Connection, replicasOf } from '../../db/servers/connection.ts'
import { withTemporaryServer } from '../../embedded/temporary.ts'
import { StartError } from '../../errors.ts'
import { createLog, type Log } from '../../log/log.ts'
import { textLines } from '../../log/text.ts'
import { version } from '../../wire/version.ts'
import { command, numberIn, WrongUsage } from '../shell/command.ts'
import { type CommandIo, createOutput, type Output } from '../shell/output.ts'
import { type Progress, withProgress } from '../shell/progress.ts'
import { onSignal } from '../signals.ts'
import { endedBy, type Opened, withDatabase } from '../with-service.ts'
import { type Verified, verifyBackup } from './verify.ts'

export const backup = command({
  name: 'backup',
  usage: 'FILE [--from-replica] [--max-rate MB]',
  args: 1,
  summary: 'Write one consistent dump of everything to a new file. The server may keep running.',
  details:
    'The file holds e-mails, password hashes and all content; only its owner can read it (mode 0600). FILE `-` is standard\noutput. The backup does not hold the cookie keys or the secret keys: keep those in another place. Without the cookie\nkeys everyone has to sign in again; without the secret keys no TOTP works. Tables of your application in the same\ndatabase are not included.\n\n--from-replica reads from the first usable server of CELLKEEP_DATABASE_REPLICA_URLS, once that server has everything\nthat the primary acknowledged before the backup began. Set hot_standby_feedback = on there.\n\n--max-rate reads at most MB megabytes a second (before compression), with pauses that leave the machine to requests.',
  options: { 'from-replica': { type: 'boolean' }, 'max-rate': { type: 'string' } },
  run: async ({ args: [name = ''], options, out, io }) => {
    const maxRate = megabytes(options['max-rate'])
    const isStream = name === '-'
    const file = isStream ? name : resolve(io.cwd, name)
    const interrupt = new AbortController()
    const work = async ({ parsed, config, connection }: Opened): Promise<void> => {
      // Only now: a database that was started for the backup may go on serving others, and must not inherit the low
      // priority.
      await io.yield?.()
      const { connections: standbys } = replicasOf(config, connection)
      if (options['from-replica'] && standbys.length === 0)
        throw new WrongUsage('--from-replica needs CELLKEEP_DATABASE_REPLICA_URLS.')
      const write = (onRows: Progress) =>
        writeBackup(connection, {
          to: isStream ? (io.stdout as Writable) : file,
          version,
          onRows,
          interrupt: interrupt.signal,
          isOwnServer: config.database_url === null,
          maxRate,
          ...(options['from-replica'] && { standbys }),
        })
      const told = out.json ? { everySeconds: 1, fields: { file } } : {}
      const done = await withProgress(io, 'rows', write, told)
      // Standard output is then the backup itself.
      const said = isStream ? createOutput({ stdout: io.stderr }, out.json) : out
      said.result(
        { file, ...done },
        `Wrote ${done.rows} rows of ${done.tables} tables to ${isStream ? 'standard output' : file} (${done.bytes} bytes). The keys are not in it: keep ${keysOf(parsed, 'cookie_keys')} and ${keysOf(parsed, 'secret_keys')} too.`,
      )
    }
    // A signal ends a run into standard output at once: no file is left, and a reader that does not read could hold it up.
    if (isStream)
      return await withDatabase(io, work).catch((error) => {
        if (io.cut?.aborted && io.cut.reason !== 'EPIPE') return 1
        throw error
      })
    await endedBy(interrupt, 'no backup was made', withDatabase(io, work, { interrupt }))
  },
})

/** Where the keys are that the servers use. */
function keysOf({ config, sources }: ParsedConfig, key: 'cookie_keys' | 'secret_keys'): string {
  const name = envName(key)
  if (config[key] && sources[key] === 'env_file') return `the file that ${name}_FILE names`
  if (config[key]) return sources[key] === 'file' ? `${key} in ${config.config}` : `the value of ${name}`
  // With a database of the operator's own no key file is read, and the servers may have another environment.
  return config.database_url === null
    ? join(config.data_dir, key)
    : `the value of ${name}, if the server has one,`
}

export const restore = command({
  name: 'restore',
  usage: 'FILE [--verify [--into URL]]',
  args: 1,
  summary: 'Load a backup into a database without accounts, and migrate it to the schema of this version.',
  details:
    'Restores everything or nothing. One-time links in the backup stop working, and queued messages are not sent. Sessions\nand tokens revoked after the backup was made are valid again: end them before you start the server:\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone\n\n--verify restores into a temporary database instead, checks every row, starts a server on it and removes it. Exit\ncodes: 0 the backup is good, 1 findings, 3 the database failed. --into uses an empty database of yours, and leaves in it what it restored. Set\nPGPASSWORD rather than a password in URL, which other users of the machine could see.',
  options: { verify: { type: 'boolean' }, into: { type: 'string' } },
  run: async ({ args: [name = ''], options: { verify = false, into }, out, io }) => {
    if (into !== undefined && !verify) throw new WrongUsage('--into needs --verify.')
    const flaw = into !== undefined && parseDatabaseUrl(into)
    if (typeof flaw === 'string') throw new WrongUsage(`--into ${flaw}.`)
    const file = resolve(io.cwd, name)
    await access(file, constants.R_OK).catch(({ code, message }) => {
      const why =
        code === 'ENOENT' ? 'does not exist. Name the file of a backup' : `cannot be read: ${message}`
      throw new StartError('backup_unreadable', `${file} ${why}.`, 2)
    })
    if (verify) return await verifyFile(file, into, out, io)
    await requireBackup(file)
    return await restoreFile(file, out, io)
  },
})

/** Bytes per second. */
function megabytes(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const number = numberIn(text)
  if (!(number >= 0.1))
    throw new WrongUsage('--max-rate takes megabytes a second, such as 10 (at least 0.1).')
  return number * 1e6
}

const restoreFile = (file: string, out: Output, io: CommandIo): Promise<void> =>
  withDatabase(
    io,
    async ({ connection }) => {
      const done = await withProgress(io, 'bytes read', (onBytes) =>
        restoreBackup(connection, file, { onBytes }),
      )
      out.result(
        done,
        `Restored ${done.rows} rows, as of ${done.created_at}.\nSessions and tokens revoked since then are valid again. Before you start the server, run\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone`,
      )
    },
    { makes: true },
  )

async function verifyFile(
  file: string,
  into: string | undefined,
  out: Output,
  io: CommandIo,
): Promise<number> {
  const { config } = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'command' })
  const log = createLog('error', textLines(io.stderr))
  const verify = (connection: Connection): Promise<Verified> =>
    withProgress(io, 'bytes read', (onBytes) => verifyBackup(connection, file, { log, onBytes }))
  const { rows, created_at, findings } =
    into === undefined ? await onTemporary(config, log, verify) : await verify({ connectionString: into })
  if (out.json) out.result({ file, rows, created_at, findings }, '')
  else {
    for (const { check, finding, what, remedy } of findings)
      out.result({}, `${check} ${finding}\n  ${what}\n  → ${remedy}`)
    if (findings.length === 0) out.result({}, `${file} is good: ${rows} rows, as of ${created_at}.`)
  }
  return findings.length === 0 ? 0 : 1
}

/** A signal ends it like a failure, so that nothing is left behind. */
async function onTemporary<T>(
  { postgres_bin, postgres_user }: Config,
  log: Log,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const interrupt = new AbortController()
  const unhook = onSignal((code) => interrupt.abort(code))
  const programs = { postgresBin: postgres_bin ?? undefined, postgresUser: postgres_user ?? undefined }
  const temporary = withTemporaryServer({ ...programs, log, interrupt: interrupt.signal }, work)
  return await endedBy(interrupt, 'the temporary database is removed', temporary).finally(unhook)
}

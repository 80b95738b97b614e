import { join, resolve } from 'node:path'
import { writeBackup } from '../backup/backup.ts'
import { restoreBackup } from '../backup/restore.ts'
import { envName } from '../config/config.ts'
import { migrate as runMigrations } from '../db/migrate.ts'
import { version } from '../wire/version.ts'
import { command } from './command.ts'
import { withProgress } from './progress.ts'
import { withDatabase } from './with-service.ts'

export const migrate = command({
  name: 'migrate',
  usage: '[--check]',
  summary:
    'Migrate the database to the schema of this version; --check only tells whether it is (exit code 3: no).',
  options: { check: { type: 'boolean' } },
  run: ({ options: { check = false }, out, io }) =>
    withDatabase(
      io,
      async ({ connection }) => {
        const { applied } = await runMigrations(connection, { mode: check ? 'check' : 'auto' })
        const text = applied.map((name) => `applied ${name}`).join('\n')
        out.result({ applied }, text || 'The schema is current.')
      },
      { makes: !check },
    ),
})

export const backup = command({
  name: 'backup',
  usage: 'FILE',
  args: 1,
  summary: 'Write one consistent dump of everything to a new file; the server may be running.',
  details:
    'Only its owner can read the file (mode 0600): it holds e-mails, password hashes and all content. It does not\nhold the cookie keys and the secret keys; keep those in another place. Without the cookie keys everyone has to\nsign in again, without the secret keys no TOTP works. Tables of your application in the same database are not included.',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(io, async ({ config, connection }) => {
      const file = resolve(io.cwd, name)
      const done = await withProgress(io, 'rows', (onRows) =>
        writeBackup(connection, { file, version, onRows }),
      )
      const place = (key: 'cookie_keys' | 'secret_keys'): string =>
        config[key] ? `the value of ${envName(key)}` : join(config.data_dir, key)
      out.result(
        { file, ...done },
        `Wrote ${done.rows} rows of ${done.tables} tables to ${file} (${done.bytes} bytes). It does not hold the keys: keep ${place('cookie_keys')} and ${place('secret_keys')} too.`,
      )
    }),
})

export const restore = command({
  name: 'restore',
  usage: 'FILE',
  args: 1,
  summary: 'Load a backup into a database without accounts, and migrate it to the schema of this version.',
  details:
    'It restores everything or nothing. One-time links end and no queued message is sent. Sessions and tokens revoked\nafter the backup was made are valid again; end them before you start the server:\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(
      io,
      async ({ connection }) => {
        const done = await withProgress(io, 'bytes read', (onBytes) =>
          restoreBackup(connection, resolve(io.cwd, name), onBytes),
        )
        out.result(
          done,
          `Restored ${done.rows} rows, as of ${done.created_at}.\nSessions and tokens revoked since then are valid again. Before you start the server, run\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone`,
        )
      },
      { makes: true },
    ),
})

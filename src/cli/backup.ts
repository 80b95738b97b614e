import { join, resolve } from 'node:path'
import { writeBackup } from '../backup/backup.ts'
import { version } from '../wire/version.ts'
import { command } from './command.ts'
import { withDatabase } from './with-service.ts'

export const backup = command({
  name: 'backup',
  usage: 'FILE',
  args: 1,
  summary: 'Write one consistent dump of everything to a new file; the server may be running.',
  details:
    'Only its owner can read the file (mode 0600): it holds e-mails, password hashes and all content. It does not\nhold the cookie keys; keep those in another place. Without them a restored service is complete, but everyone\nhas to sign in again. Tables of your application in the same database are not included.',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(io, async ({ config, connection }) => {
      const file = resolve(io.cwd, name)
      const done = await writeBackup(connection, { file, version })
      const keys = config.cookie_keys
        ? 'the value of CELLKEEP_COOKIE_KEYS'
        : join(config.data_dir, 'cookie_keys')
      out.result(
        { file, ...done },
        `Wrote ${done.rows} rows of ${done.tables} tables to ${file} (${done.bytes} bytes). It does not hold the cookie keys: keep ${keys} too.`,
      )
    }),
})

import { join, resolve } from 'node:path'
import { writeBackup } from '../backup/backup.ts'
import { command } from './command.ts'
import { version } from './version.ts'
import { withDatabase } from './with-service.ts'

export const backup = command({
  name: 'backup',
  usage: 'FILE',
  args: 1,
  summary: 'Write one consistent dump of everything into a new file, beside a running server.',
  details:
    'The file is for its owner only (mode 0600): it holds e-mails, hashes of passwords and all content. Not in it\nare the cookie keys; keep them apart from it. Without them a restored service is complete, but everybody\nhas to sign in again. Tables that an application keeps in the same database are its own to back up.',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(io, async ({ config, connection }) => {
      const file = resolve(io.cwd, name)
      const done = await writeBackup(connection, { file, version })
      const keys = config.cookie_keys
        ? 'the variable CELLKEEP_COOKIE_KEYS'
        : join(config.data_dir, 'cookie_keys')
      out.result(
        { file, ...done },
        `${done.rows} rows of ${done.tables} tables are in ${file} (${done.bytes} bytes). The cookie keys are not: keep ${keys} too.`,
      )
    }),
})

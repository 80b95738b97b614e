import { resolve } from 'node:path'
import { restoreBackup } from '../backup/restore.ts'
import { command } from './command.ts'
import { withDatabase } from './with-service.ts'

export const restore = command({
  name: 'restore',
  usage: 'FILE',
  args: 1,
  summary: 'Load a backup into a database without accounts, and migrate it to the schema of this version.',
  details:
    'It restores everything or nothing. Sessions and tokens revoked after the backup was made are valid again; end\nthem before you start the server:\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(
      io,
      async ({ connection }) => {
        const done = await restoreBackup(connection, resolve(io.cwd, name))
        out.result(
          done,
          `Restored ${done.rows} rows, as of ${done.created_at}.\nSessions and tokens revoked since then are valid again. Before you start the server, run\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone`,
        )
      },
      { makes: true },
    ),
})

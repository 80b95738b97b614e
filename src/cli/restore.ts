import { resolve } from 'node:path'
import { restoreBackup } from '../backup/restore.ts'
import { command } from './command.ts'
import { withDatabase } from './with-service.ts'

export const restore = command({
  name: 'restore',
  usage: 'FILE',
  args: 1,
  summary: 'Load a backup into a database that holds no account yet, and bring it to this version’s schema.',
  details:
    'All or nothing. Sessions and tokens that were revoked after the backup was made are alive again in it; end\nthem before serving:\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone',
  run: ({ args: [name = ''], out, io }) =>
    withDatabase(
      io,
      async ({ connection }) => {
        const done = await restoreBackup(connection, resolve(io.cwd, name))
        out.result(
          done,
          `${done.rows} rows are back, as of ${done.created_at}.\nSessions and tokens that were revoked since are alive again: before you serve, run\n  cellkeep session revoke-all --everyone\n  cellkeep token revoke-all --everyone`,
        )
      },
      { makes: true },
    ),
})

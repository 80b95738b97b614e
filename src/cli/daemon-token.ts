import { readDaemonTokenFile } from '../auth/daemon-token.ts'
import { randomToken } from '../auth/secrets.ts'
import { loadConfig } from '../config/file.ts'
import { StartError } from '../errors.ts'
import { replacePrivateFile } from '../files/private-file.ts'
import { tokenUnwritable } from '../files/unwritable.ts'
import { subcommand } from './shell/command.ts'
import { group } from './shell/command-group.ts'

const rotate = subcommand('daemon-token', {
  name: 'rotate',
  usage: '[--only]',
  summary: 'Write a new token to CELLKEEP_DAEMON_TOKEN_FILE, and print its path.',
  options: { only: { type: 'boolean' } },
  run: async ({ options, out, io }) => {
    const { config } = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'command' })
    const path = config.daemon_token_file
    if (path === null)
      throw new StartError(
        'daemon_token_off',
        'No daemon token file is configured. Set CELLKEEP_DAEMON_TOKEN_FILE for this command and for the server.',
        1,
      )
    const old = await readDaemonTokenFile(path)
    if ('problem' in old && !old.missing && options.only !== true)
      throw new StartError(
        'daemon_token_unusable',
        `${path} ${old.problem}. Repair it, or write a new one with \`cellkeep daemon-token rotate --only\`.`,
        1,
      )
    const keepsOld = !('problem' in old) && options.only !== true
    const lines = keepsOld ? [randomToken(), old.current] : [randomToken()]
    const remedy = 'Let this user write to its directory, or set CELLKEEP_DAEMON_TOKEN_FILE to another path.'
    await replacePrivateFile(path, `${lines.join('\n')}\n`).catch(tokenUnwritable(path, remedy))
    out.result({ path, previous_holds: keepsOld }, path)
  },
})

export const daemonToken = group({
  name: 'daemon-token',
  summary: 'The token for scripts that act as the keeper, which purging an account by RPC requires.',
  details:
    'There is no such token until CELLKEEP_DAEMON_TOKEN_FILE names a file. Send its first line in the header\n' +
    'X-Daemon-Token. A running server accepts a new token at once; the previous one stays valid until the\n' +
    'next rotation, or ends at once with --only.',
  commands: [rotate],
})

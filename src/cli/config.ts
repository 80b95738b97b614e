import { randomToken } from '../auth/secrets.ts'
import { declared } from '../compose-app.ts'
import { loadConfig } from '../config/file.ts'
import { shownSettings } from '../config/show.ts'
import { type Command, subcommand, wrongUsage } from './shell/command.ts'
import { aligned } from './shell/output.ts'

export const config: Command = {
  name: 'config',
  usage: 'config [--json]',
  summary: 'Print every setting with its value and source, and check them as `start` does.',
  async run(args, io) {
    const json = args[0] === '--json'
    if (args.length > (json ? 1 : 0))
      return wrongUsage(config, args, io, '`config` takes no arguments but --json.\n')
    const parsed = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })
    declared(parsed)
    const settings = shownSettings(parsed)
    if (json) {
      io.stdout.write(`${JSON.stringify({ settings, warnings: parsed.warnings })}\n`)
      return 0
    }
    const rows = settings.map(({ name, value, source }) => [
      name,
      value === '' ? '(none)' : (value ?? '(unset)'),
      source,
    ])
    io.stdout.write(aligned([['SETTING', 'VALUE', 'SOURCE'], ...rows]))
    for (const warning of parsed.warnings) io.stderr.write(`warning: ${warning}\n`)
    return 0
  },
}

/** Needs no database, unlike the rest of its group. */
export const generateKey = subcommand('keys', {
  name: 'generate',
  summary: 'Print a random key for CELLKEEP_COOKIE_KEYS or CELLKEEP_SECRET_KEYS.',
  run: async ({ out }) => {
    const key = randomToken()
    out.result({ key }, key)
  },
})

import { randomToken } from '../auth/secrets.ts'
import { loadConfig } from '../config/file.ts'
import { shownSettings } from '../config/show.ts'
import { type Command, wrongUsage } from './command.ts'
import { aligned } from './output.ts'

export const config: Command = {
  name: 'config',
  usage: 'config [--json]',
  summary: 'Print every setting, its value and where it comes from; check them as `start` does.',
  async run(args, io) {
    const json = args[0] === '--json'
    if (args.length > (json ? 1 : 0)) return wrongUsage(config, io)
    const parsed = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })
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

export const keys: Command = {
  name: 'keys',
  usage: 'keys generate',
  summary: 'Print one random key for CELLKEEP_COOKIE_KEYS.',
  async run(args, io) {
    if (args.length !== 1 || args[0] !== 'generate') return wrongUsage(keys, io)
    io.stdout.write(`${randomToken()}\n`)
    return 0
  },
}

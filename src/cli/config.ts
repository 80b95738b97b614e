import { randomToken } from '../auth/secrets.ts'
import { declared } from '../compose-app.ts'
import { loadConfig } from '../config/file.ts'
import { shownSettings } from '../config/show.ts'
import { command, subcommand } from './shell/command.ts'
import { aligned } from './shell/output.ts'

export const config = command({
  name: 'config',
  summary: 'Print every setting with its value and source, and check them as `start` does.',
  async run({ out, io }) {
    const parsed = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })
    declared(parsed)
    const settings = shownSettings(parsed)
    const { warnings } = parsed
    const rows = settings.map(({ name, value, source }) => [
      name,
      value === '' ? '(none)' : (value ?? '(unset)'),
      source,
    ])
    out.result({ settings, warnings }, aligned([['SETTING', 'VALUE', 'SOURCE'], ...rows]).trimEnd())
    if (!out.json) for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`)
  },
})

/** Needs no database, unlike the rest of its group. */
export const generateKey = subcommand('keys', {
  name: 'generate',
  summary: 'Print a random key for CELLKEEP_COOKIE_KEYS or CELLKEEP_SECRET_KEYS.',
  run: async ({ out }) => {
    const key = randomToken()
    out.result({ key }, key)
  },
})

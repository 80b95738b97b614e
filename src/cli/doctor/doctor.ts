import type { ParsedConfig } from '../../config/config.ts'
import { loadConfig } from '../../config/file.ts'
import { isLoopbackHost } from '../../config/ip.ts'
import { StartError } from '../../errors.ts'
import { command } from '../command.ts'
import { withDatabase } from '../with-service.ts'
import { databaseFindings } from './database.ts'
import { type Finding, fileFindings } from './files.ts'
import { passkeysOff } from './passkeys.ts'

export const doctor = command({
  name: 'doctor',
  summary: 'Check this installation for problems, and say how to fix them.',
  details:
    'Checks the configuration, the files of the data dir, the schema, and who holds keeper and admin. It changes\nnothing. Exit code 0: no findings, 1: findings, 3: the database cannot be reached.',
  run: async ({ out, io }) => {
    let count = 0
    const report = (findings: readonly Finding[]): void => {
      for (const one of findings) {
        count += 1
        out.result(one, `${one.finding}\n  ${one.what}\n  → ${one.remedy}\n`)
      }
    }
    const loaded = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })
    report([...configFindings(loaded), ...passkeysOff(loaded)])
    let isOpen = false
    try {
      await withDatabase(io, async (opened) => {
        isOpen = true
        report(await fileFindings(opened.config))
        report(await databaseFindings(opened))
      })
    } catch (error) {
      // A database that does not answer hides nothing about the files.
      if (!isOpen && error instanceof StartError && error.reason === 'db_unreachable')
        report(await fileFindings(loaded.config))
      const remedy = error instanceof StartError && remedies[error.reason]
      if (!remedy) throw error
      report([{ finding: error.reason, what: error.message, remedy }])
    }
    if (count === 0 && !out.json) io.stdout.write('Nothing is wrong.\n')
    return count === 0 ? 0 : 1
  },
})

/** For errors that keep the database from being opened. */
const remedies: Record<string, string> = {
  no_database: 'Run `cellkeep start`.',
  data_dir_unsafe:
    'Then delete any `bootstrap_token` or `cookie_keys` in it that you did not make, and run this again.',
}

function configFindings({ config, warnings }: ParsedConfig): Finding[] {
  const findings: Finding[] = warnings.map((warning) => ({
    finding: 'configuration',
    what: `${warning}.`,
    remedy: '`cellkeep config` shows the settings in force; correct or remove this one.',
  }))
  if (!config.cookie_secure)
    findings.push({
      finding: 'cookie_insecure',
      what: 'Session cookies are sent without `Secure`, so also over plain http.',
      remedy:
        'Fine for trying it out on this machine. Set CELLKEEP_COOKIE_SECURE=true before anyone else uses it.',
    })
  const plain = config.allowed_origins.filter(isPlainAndRemote)
  if (plain.length > 0)
    findings.push({
      finding: 'origin_without_tls',
      what: `CELLKEEP_ALLOWED_ORIGINS allows origins without encryption: ${plain.join(', ')}.`,
      remedy:
        'List only https:// origins there: anyone on the network path can change a page sent over http.',
    })
  if (config.env === 'development')
    findings.push({
      finding: 'development',
      what: 'CELLKEEP_ENV is development, which allows weaker password hashing and tells callers more.',
      remedy: 'Set CELLKEEP_ENV=production, except on a developer’s machine.',
    })
  return findings
}

const isPlainAndRemote = (origin: string): boolean => {
  const host = /^http:\/\/(\[[^\]]*\]|[^:]*)/i.exec(origin)?.[1]
  return host !== undefined && !isLoopbackHost(host.replace(/^\[|\]$/g, ''))
}

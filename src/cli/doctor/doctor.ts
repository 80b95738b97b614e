import type { ParsedConfig } from '../../config/config.ts'
import { loadConfig } from '../../config/file.ts'
import { isLoopbackHost } from '../../config/ip.ts'
import { StartError } from '../../errors.ts'
import { command } from '../command.ts'
import { withDatabase } from '../with-service.ts'
import { databaseFindings } from './database.ts'
import { fileFindings } from './files.ts'
import type { Finding } from './finding.ts'

export const doctor = command({
  name: 'doctor',
  summary: 'Look for what is wrong with this installation, and say what to do about it.',
  details:
    'It looks at the configuration, the files of the data dir, the schema, and who holds keeper and admin; it\nchanges nothing. Exit code 0: nothing was found, 1: something was, 3: the database cannot be reached.',
  run: async ({ out, io }) => {
    let count = 0
    const report = (findings: readonly Finding[]): void => {
      for (const one of findings) {
        count += 1
        out.result(one, `${one.finding}\n  ${one.what}\n  → ${one.remedy}\n`)
      }
    }
    report(configFindings(await loadConfig({ env: io.env, cwd: io.cwd, mode: 'server' })))
    try {
      await withDatabase(io, async (opened) => {
        report(await fileFindings(opened.config))
        report(await databaseFindings(opened))
      })
    } catch (error) {
      const remedy = error instanceof StartError && remedies[error.reason]
      if (!remedy) throw error
      report([{ finding: error.reason, what: error.message, remedy }])
    }
    if (count === 0 && !out.json) io.stdout.write('Nothing is wrong.\n')
    return count === 0 ? 0 : 1
  },
})

/** For what keeps the database from being looked at. */
const remedies: Record<string, string> = {
  no_database: 'Run `cellkeep start`.',
  data_dir_unsafe:
    'Then delete a `bootstrap_token` or `cookie_keys` in it that you did not make, and run this again.',
}

function configFindings({ config, warnings }: ParsedConfig): Finding[] {
  const findings: Finding[] = warnings.map((warning) => ({
    finding: 'configuration',
    what: `${warning}.`,
    remedy: '`cellkeep config` shows what is in force; correct or remove the setting.',
  }))
  if (!config.cookie_secure)
    findings.push({
      finding: 'cookie_insecure',
      what: 'Session cookies are sent without `Secure`, also over plain http.',
      remedy:
        'Fit for trying it out on this machine; before anybody else uses it, set CELLKEEP_COOKIE_SECURE=true.',
    })
  const plain = config.allowed_origins.filter(isPlainAndRemote)
  if (plain.length > 0)
    findings.push({
      finding: 'origin_without_tls',
      what: `Pages are let in that come without encryption: ${plain.join(', ')}.`,
      remedy:
        'List https:// origins only in CELLKEEP_ALLOWED_ORIGINS: a page on its way can be changed by others.',
    })
  if (config.env === 'development')
    findings.push({
      finding: 'development',
      what: 'CELLKEEP_ENV is development, which permits weaker password hashing and tells callers more.',
      remedy: 'Set CELLKEEP_ENV=production, except on the machine of a developer.',
    })
  return findings
}

const isPlainAndRemote = (origin: string): boolean => {
  const host = /^http:\/\/(\[[^\]]*\]|[^:]*)/i.exec(origin)?.[1]
  return host !== undefined && !isLoopbackHost(host.replace(/^\[|\]$/g, ''))
}

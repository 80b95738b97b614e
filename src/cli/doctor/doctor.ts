import { placeOf } from '../../backing.ts'
import { declared } from '../../compose-app.ts'
import { type Config, ConfigError, type ParsedConfig, withDataDir } from '../../config/config.ts'
import { loadConfig } from '../../config/file.ts'
import { isLoopbackHost } from '../../config/ip.ts'
import { existingDataDir } from '../../embedded/place.ts'
import { StartError } from '../../errors.ts'
import { command, numberIn, WrongUsage } from '../shell/command.ts'
import { agreed } from '../shell/confirm.ts'
import type { CommandIo } from '../shell/output.ts'
import { withProgress } from '../shell/progress.ts'
import { withDatabase } from '../with-service.ts'
import { databaseFindings } from './database.ts'
import { fileFindings } from './files.ts'
import { type Finding, type Fix, levelOf } from './finding.ts'
import { passkeysOff } from './passkeys.ts'

export const doctor = command({
  name: 'doctor',
  usage: '[--fix] [--deep [--sample PERCENT]]',
  summary: 'Check this installation for problems, and say how to fix them.',
  details:
    'Checks the configuration, the files of the data dir, the schema, the holders of keeper and admin, the database\nserver and the running nodes. Changes nothing without --fix. Exit codes: 0 no errors, warnings at most; 1 errors;\n3 the database cannot be reached.\n\n--fix repairs those problems that are safe to repair. At a terminal it asks before each.\n\n--deep also reads and checks every row: constraints, grants, relations of cells, numbers of the audit log, formats\nof hashes. It reads in small batches, with pauses. --sample limits it to about PERCENT % of the rows.',
  options: { fix: { type: 'boolean' }, deep: { type: 'boolean' }, sample: { type: 'string' } },
  run: async ({ options, out, io }) => {
    const sample = sampleOf(options)
    const counts = { error: 0, warning: 0 }
    const fixes: [finding: string, fix: Fix][] = []
    const report = (findings: readonly Finding[]): void => {
      for (const one of findings) {
        const { fix, ...shown } = one
        const level = levelOf(one.finding)
        counts[level] += 1
        out.result(
          { ...shown, level, ...(fix && { fix: fix.does }) },
          `${one.finding}${level === 'warning' ? ' (warning)' : ''}\n  ${one.what}\n  → ${one.remedy}\n`,
        )
        if (options.fix && fix) fixes.push([one.finding, fix])
      }
    }
    const mend = async (): Promise<void> => {
      for (const [finding, { does, run }] of fixes.splice(0))
        if (await agreed(io, `${finding}: ${does}. Do it?`)) {
          await run()
          counts[levelOf(finding)] -= 1
          out.result({ finding, fixed: does }, `Fixed ${finding}: ${does}`)
        }
    }
    const { loaded, problems } = await configOf(io)
    declared(loaded)
    report(problems)
    report([...configFindings(loaded), ...passkeysOff(loaded)])
    let isOpen = false
    try {
      await withDatabase(io, async (opened) => {
        isOpen = true
        report(await fileFindings(opened.config))
        report(await withProgress(io, 'rows', (onRows) => databaseFindings(opened, { sample, onRows })))
        await mend()
      })
    } catch (error) {
      // Findings about the files, such as a full disk, are shown even if the database does not answer.
      if (!isOpen && error instanceof StartError && unanswered.includes(error.reason))
        report(await fileFindings(await locatedConfig(loaded)))
      const remedy = error instanceof StartError && remedies[error.reason]
      if (!remedy) throw error
      report([{ finding: error.reason, what: error.message, remedy }])
    }
    await mend()
    if (counts.error + counts.warning === 0 && !out.json) io.stdout.write('Nothing is wrong.\n')
    return counts.error === 0 ? 0 : 1
  },
})

/** Missing settings of a server do not keep the doctor from checking the rest; broken settings do. */
async function configOf({ env, cwd }: CommandIo): Promise<{ loaded: ParsedConfig; problems: Finding[] }> {
  try {
    return { loaded: await loadConfig({ env, cwd, mode: 'server' }), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const loaded = await loadConfig({ env, cwd, mode: 'command' })
    const problems = error.problems.map((problem) => ({
      finding: 'configuration',
      what: `${problem}.`,
      remedy: 'A server does not start until this setting is corrected.',
    }))
    return { loaded, problems }
  }
}

/** With the data dir that would be used: root may use another one than the default. */
async function locatedConfig(loaded: ParsedConfig): Promise<Config> {
  const isEmbedded = loaded.config.database_url === null
  const dataDir = isEmbedded ? await existingDataDir(placeOf(loaded)) : undefined
  return dataDir === undefined ? loaded.config : withDataDir(loaded, dataDir).config
}

/** In per cent; null: no row is judged. */
function sampleOf({ deep = false, sample }: { deep?: boolean; sample?: string }): number | null {
  if (!deep && sample !== undefined) throw new WrongUsage('--sample needs --deep.')
  const percent = numberIn(sample ?? '100')
  if (!(percent > 0 && percent <= 100))
    throw new WrongUsage('--sample takes a percentage above 0, such as 10.')
  return deep ? percent : null
}

const unanswered = ['db_unreachable', 'database_start_failed']

/** For errors that keep the database from being opened. */
const remedies: Record<string, string> = {
  no_database: 'Run `cellkeep start`.',
  db_read_only: 'Until this is resolved, no node starts.',
  data_dir_unsafe:
    'Then delete any `bootstrap_token` or `cookie_keys` in it that you did not create, and run `cellkeep doctor` again.',
}

function configFindings({ config, warnings }: ParsedConfig): Finding[] {
  const findings: Finding[] = warnings.map((warning) => ({
    finding: 'configuration',
    what: `${warning}.`,
    remedy: '`cellkeep config` shows the settings in force. Correct or remove this one.',
  }))
  if (!config.cookie_secure)
    findings.push({
      finding: 'cookie_insecure',
      what: 'Session cookies lack `Secure`, so browsers also send them over plain http.',
      remedy:
        'This is fine for a trial on this machine. Set CELLKEEP_COOKIE_SECURE=true before anyone else uses the server.',
    })
  const plain = config.allowed_origins.filter(isPlainAndRemote)
  if (plain.length > 0)
    findings.push({
      finding: 'origin_without_tls',
      what: `CELLKEEP_ALLOWED_ORIGINS allows origins without encryption: ${plain.join(', ')}.`,
      remedy: 'List only https:// origins: anyone on the network path can change a page sent over http.',
    })
  const { metrics_port, metrics_host } = config
  if (metrics_port !== null && !isLoopbackHost(metrics_host) && !privateAddress.test(metrics_host))
    findings.push({
      finding: 'metrics_exposed',
      what: `The metrics are open to anyone who can reach ${metrics_host}:${metrics_port}.`,
      remedy: 'Set CELLKEEP_METRICS_HOST to 127.0.0.1, or to an address that only Prometheus can reach.',
    })
  if (config.env === 'development')
    findings.push({
      finding: 'development',
      what: 'CELLKEEP_ENV is development, which allows weaker password hashing and tells callers more.',
      remedy: 'Unless this is a developer’s machine, set CELLKEEP_ENV=production.',
    })
  return findings
}

const privateAddress = /^(10\.|172\.(1[6-9]|2\d|3[01])\.|192\.168\.|f[cd])[\d.:a-f]+$/i

const isPlainAndRemote = (origin: string): boolean => {
  const host = /^http:\/\/(\[[^\]]*\]|[^:]*)/i.exec(origin)?.[1]
  return host !== undefined && !isLoopbackHost(host.replace(/^\[|\]$/g, ''))
}

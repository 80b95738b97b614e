import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readDaemonTokenFile } from '../../auth/daemon-token.ts'
import type { Config } from '../../config/config.ts'
import { spaceOf } from '../../embedded/disk.ts'
import { databaseUser, sharedUser } from '../../embedded/user.ts'
import { readPrivateFile } from '../../files/private-file.ts'
import { ownerRisk } from '../../files/safe-directory.ts'
import type { Finding } from './finding.ts'

type Files = Pick<Config, 'data_dir' | 'cookie_keys' | 'database_url' | 'daemon_token_file' | 'disk_reserve'>

/** Findings about the files of an installation and who may read them. */
export async function fileFindings(config: Files): Promise<Finding[]> {
  const { data_dir, cookie_keys, database_url, daemon_token_file } = config
  const findings = [...(await openToOthers(data_dir)), ...(await diskFindings(config))]
  const user = database_url === null ? await databaseUser(join(data_dir, 'db')) : undefined
  if (user?.name === sharedUser)
    findings.push({
      finding: 'database_user_shared',
      what: `The database belongs to ${sharedUser}, a user that other daemons share: they can read and change everything in it.`,
      remedy: `Stop Cellkeep, create a user with \`useradd --system cellkeep\`, and run \`chown -R cellkeep: ${join(data_dir, 'db')} ${join(data_dir, 'socket')}\`.`,
    })
  // Configured keys are used, whatever the file holds.
  const kept = cookie_keys ? undefined : await readPrivateFile(join(data_dir, 'cookie_keys'))
  if (kept && 'problem' in kept && !kept.missing)
    findings.push({
      finding: 'cookie_keys_unusable',
      what: `The cookie keys at ${join(data_dir, 'cookie_keys')} cannot be used: the file ${kept.problem}.`,
      remedy: `${kept.remedy ?? 'Repair the file and give it mode 0600.'} If you move it away, the next start creates a new key and every browser session ends.`,
    })
  const daemon = daemon_token_file === null ? undefined : await readDaemonTokenFile(daemon_token_file)
  if (daemon && 'problem' in daemon)
    findings.push({
      finding: 'daemon_token_unusable',
      what: `No daemon token is accepted: the file ${daemon_token_file} ${daemon.problem}.`,
      remedy:
        'Run `cellkeep daemon-token rotate --only` as the user of the server, or unset CELLKEEP_DAEMON_TOKEN_FILE.',
    })
  const keys = cookie_keys ?? (kept && 'content' in kept ? kept.content.split(',') : [])
  if (keys.some(isWeak))
    findings.push({
      finding: 'cookie_key_weak',
      what: 'A cookie key has few different characters. Anyone who guesses it can sign cookies.',
      remedy:
        'On every server, append a comma and a key from `cellkeep keys generate`. Then move it to the front and remove the weak key.',
    })
  return findings
}

async function diskFindings({ database_url, data_dir, disk_reserve }: Files): Promise<Finding[]> {
  if (database_url !== null || disk_reserve === null) return []
  const { free, state, reserve, low } = await spaceOf(data_dir, disk_reserve)
  if (state === 'ok') return []
  const mib = (bytes: number): string => `${Math.floor(bytes / 1_048_576)} MiB`
  const isFull = state === 'full'
  return [
    {
      finding: isFull ? 'disk_full' : 'disk_low',
      what: `The disk of ${data_dir} has ${mib(free)} left${isFull ? ', so new content is refused.' : `. Below ${mib(reserve)}, new content is refused.`}`,
      remedy: `Free at least ${mib(low)}: remove other files, enlarge the disk, or lower CELLKEEP_CELL_TOMBSTONE_RETENTION_DAYS and CELLKEEP_AUDIT_RETENTION_DAYS to delete old rows sooner.`,
    },
  ]
}

/** 32 random characters have about 25 different ones; a repeated word has only its few letters. */
const isWeak = (key: string): boolean => new Set(key.trim()).size < 12

async function openToOthers(dataDir: string): Promise<Finding[]> {
  const findings: Finding[] = []
  const check = async (path: string, mayPass: boolean): Promise<void> => {
    const found = await lstat(path).catch(() => undefined)
    if (!found || found.isSymbolicLink()) return
    const foreign = path === dataDir && ownerRisk(path, found)
    if (foreign)
      findings.push({
        finding: 'data_dir_unsafe',
        what: `${path} ${foreign.what}.`,
        remedy: foreign.remedy,
      })
    const open = found.mode & 0o077
    // For root, the directory may let the database's own user pass through, and nothing more.
    if (open === 0 || (mayPass && found.uid === 0 && (open & 0o066) === 0)) return
    const right = mayPass && found.uid === 0 ? '711' : found.isDirectory() ? '700' : '600'
    findings.push({
      finding: 'open_to_others',
      what: `${path} has mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}: other users of this machine have access.`,
      remedy: `Run \`chmod ${right} ${path}\`.`,
      fix: { does: `chmod ${right} ${path}`, run: () => chmod(path, Number.parseInt(right, 8)) },
    })
  }
  await check(dataDir, true)
  const names = await readdir(dataDir).catch(() => [])
  // `lib` holds only links to the libraries of the database's programs.
  for (const name of names.sort()) if (name !== 'lib') await check(join(dataDir, name), false)
  return findings
}

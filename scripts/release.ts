import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * `npm run release -- 0.2.0`: moves the pending changes of the changelog under the version, sets it in the
 * manifest and the lock file, commits, tags, and packs. It does not push or publish: its last line says how to.
 * Needs a clean tree on `main`.
 */
export function release(
  root: string,
  version: string,
  today: string,
  dryRun = ['publish', '--dry-run'],
): void {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const npm = (...args: string[]): void => {
    execFileSync('npm', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  }
  if (git('status', '--porcelain') !== '')
    throw new Error('The tree has changes; commit or remove them first.')
  if (git('branch', '--show-current') !== 'main') throw new Error('Releases are made on main.')
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`The tag v${version} exists already.`)
  const changelog = join(root, 'CHANGELOG.md')
  writeFileSync(changelog, withVersion(readFileSync(changelog, 'utf8'), version, today))
  npm('version', version, '--no-git-tag-version', '--allow-same-version')
  git('commit', '--all', '--message', `Release ${version}`)
  git('tag', '--annotate', `v${version}`, '--message', `Cellkeep ${version}`)
  npm('run', 'build', '--if-present')
  npm(...dryRun)
}

const pending = '## Pending'

/** The changelog with its pending changes under the version, and an empty list of pending ones. */
export function withVersion(changelog: string, version: string, today: string): string {
  if (!/^\d+\.\d+\.\d+(-[0-9a-z.-]+)?$/.test(version))
    throw new Error(`"${version}" is no version; write one like 0.2.0 or 0.2.0-rc.1.`)
  const at = changelog.indexOf(`\n${pending}\n`)
  if (at < 0) throw new Error(`CHANGELOG.md has no heading "${pending}".`)
  const after = changelog.slice(at + pending.length + 2)
  const changes = after.split(/^## /m, 1)[0] as string
  if (changes.trim() === '')
    throw new Error('CHANGELOG.md lists no pending change, so there is nothing to release.')
  return `${changelog.slice(0, at)}\n${pending}\n\n## ${version} (${today})\n${after}`
}

/** Whether the changelog lists changes without a version. Publishing is refused then. */
export const hasPending = (changelog: string): boolean => {
  const [, after] = changelog.split(`\n${pending}\n`)
  return after !== undefined && after.split(/^## /m, 1)[0]?.trim() !== ''
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { check: { type: 'boolean', default: false } },
  })
  const [version] = positionals
  try {
    if (values.check) {
      if (hasPending(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')))
        throw new Error('CHANGELOG.md has pending changes: run npm run release -- VERSION before publishing.')
    } else {
      if (version === undefined) throw new Error('Say which version: npm run release -- 0.2.0')
      release(root, version, new Date().toISOString().slice(0, 10))
      console.log(
        `\nReleased in this clone. Publish it:\n  git push --follow-tags && npm run release:publish`,
      )
    }
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}

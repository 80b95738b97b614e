import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { hasPending, release, withVersion } from './release.ts'

const changelog = '# Changelog\n\n## Pending\n\n- A change.\n\n## 0.1.0 (2026-01-02)\n\n- The first.\n'

describe('the changelog of a release', () => {
  it('has the pending changes under the version, and none pending', () => {
    const next = withVersion(changelog, '0.2.0', '2026-03-04')
    expect(next).toBe(
      '# Changelog\n\n## Pending\n\n## 0.2.0 (2026-03-04)\n\n- A change.\n\n## 0.1.0 (2026-01-02)\n\n- The first.\n',
    )
    expect([hasPending(changelog), hasPending(next)]).toEqual([true, false])
  })

  it.each([
    ['an empty list', changelog.replace('- A change.\n', ''), '0.2.0', /nothing to release/],
    ['no such heading', changelog.replace('Pending', 'Next'), '0.2.0', /no heading/],
    ['a word for a version', changelog, 'next', /is no version/],
  ])('is refused with %s', (_name, text, version, message) => {
    expect(() => withVersion(text, version, '2026-03-04')).toThrow(message)
  })
})

describe('a release', () => {
  const root = mkdtempSync(join(tmpdir(), 'release-'))
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' })
  afterAll(() => rmSync(root, { recursive: true }))
  beforeEach(() => {
    rmSync(join(root, '.git'), { recursive: true, force: true })
    writeFileSync(join(root, 'CHANGELOG.md'), changelog)
    writeFileSync(
      join(root, 'package.json'),
      '{ "name": "released", "version": "0.1.0", "private": false }\n',
    )
    git('init', '--quiet', '--initial-branch', 'main')
    git('config', 'user.email', 'ada@example.com')
    git('config', 'user.name', 'Ada')
    git('add', '.')
    git('commit', '--quiet', '--message', 'First')
  })

  it('is a commit and a tag on main', () => {
    // Only packed, because publishing asks the registry even in a dry run.
    release(root, '0.2.0', '2026-03-04', ['pack', '--dry-run'])
    expect(git('log', '-1', '--format=%s').trim()).toBe('Release 0.2.0')
    expect(git('tag', '--points-at', 'HEAD').trim()).toBe('v0.2.0')
    expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version).toBe('0.2.0')
    expect(git('status', '--porcelain')).toBe('')
  })

  it('is refused on a tree with changes, on another branch and with a tag that exists', () => {
    writeFileSync(join(root, 'new.txt'), 'not committed')
    expect(() => release(root, '0.2.0', '2026-03-04')).toThrow(/has changes/)
    git('add', '.')
    git('commit', '--quiet', '--message', 'Second')
    git('tag', 'v0.2.0')
    expect(() => release(root, '0.2.0', '2026-03-04')).toThrow(/exists already/)
    git('checkout', '--quiet', '-b', 'other')
    expect(() => release(root, '0.3.0', '2026-03-04')).toThrow(/on main/)
    expect(git('log', '-1', '--format=%s').trim()).toBe('Second')
  })
})

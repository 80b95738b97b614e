import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

const folders = ['src', 'test', 'docs', 'examples', 'migrations', 'scripts', 'bench']
const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md']

/** Spelt with a dot so that this file does not match itself. */
const [law, plan] = ['SP.EC', 'DES.IGN'].map((word) => word.replace('.', ''))

const unavailable = [/\bcontract \d/i, /\bsections? \d/i, new RegExp(`\\b(${law}|${plan})(\\.md)?\\b`)]

const refersElsewhere = (line: string): boolean => unavailable.some((pattern) => pattern.test(line))

/** `file:line: text` of every reference in the tracked files of a folder, or in one page. */
function referencesIn(place: string): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--', place], { cwd: root, encoding: 'utf8' })
  const files = listed.split('\0').filter((file) => file !== '')
  expect(files).not.toEqual([])
  return files.flatMap((file) =>
    readFileSync(`${root}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, index) => (refersElsewhere(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  )
}

describe('no file refers to a document that readers do not have', () => {
  it('recognises such references', () => {
    expect([`see ${law}`, `${plan}.md`].filter(refersElsewhere)).toHaveLength(2)
    for (const word of ['contract', 'section', 'Sections'])
      expect(refersElsewhere(`(${[word, '4'].join(' ')}.1)`), word).toBe(true)
    expect(refersElsewhere('the design of a specification, in sections and contracts')).toBe(false)
  })

  it.each([...folders, ...pages])('%s', (place) => {
    expect(referencesIn(place)).toEqual([])
  })
})

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { events } from '../src/events.ts'
import { catalogue } from '../src/reasons.ts'
import { sentences } from './copy/audit.ts'
import { explain } from './copy/errors.ts'

const root = fileURLToPath(new URL('.', import.meta.url))
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !/\.test\.ts$|vite\.config/.test(file))
  .map((file) => ({ file, text: readFileSync(root + file, 'utf8') }))
const folderOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] as string) : '')

/** What a folder may import besides itself; pages import these four, and never each other. */
const below: Record<string, string[]> = {
  copy: [],
  lib: [],
  ui: ['copy', 'lib'],
  api: ['ui', 'copy', 'lib'],
}
const shared = ['api', 'ui', 'copy', 'lib']

describe('the sources of the console', () => {
  it('import from below only, and from src nothing at run time but the client', () => {
    const wrong: string[] = []
    for (const { file, text } of files)
      for (const [line, isType, path] of text.matchAll(/^(?:import|\} from).*?(\btype\b)?.*?'(\.[^']+)'/gm)) {
        const target = new URL(path as string, `file:///console/${file}`).pathname
        const [, top = '', folder = ''] = target.split('/')
        const own = folderOf(file)
        if (top === 'src' && !target.startsWith('/src/client/') && !line.startsWith('import type'))
          wrong.push(`${file}: ${target}`)
        if (top !== 'console' || own === '' || isType) continue
        const isFile = folder.includes('.')
        if (!isFile && folder !== own && !(below[own] ?? shared).includes(folder))
          wrong.push(`${file}: ${target}`)
      }
    expect(wrong).toEqual([])
  })

  it('have their words in copy: no text for people stands in a component', () => {
    const wrong = files
      .filter(({ file }) => file.endsWith('.tsx'))
      .flatMap(({ file, text }) => {
        const code = text.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        const between = [...code.matchAll(/^\s*[A-Z][a-z]+(?: [a-z]+)*[.!?]?\s*$/gm)].map(([found]) =>
          found.trim(),
        )
        const attributes = [...code.matchAll(/\b(?:label|title|placeholder|hint|aria-label)="([^"]+)"/g)].map(
          ([, found]) => found,
        )
        return [...between, ...attributes].map((found) => `${file}: ${found}`)
      })
    expect(wrong).toEqual([])
  })

  it('never make markup of text, nor a link of data', () => {
    for (const { file, text } of files) {
      expect(text, file).not.toMatch(
        /innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function/,
      )
      for (const [, value] of text.matchAll(/\bhref=\{([^}]*)\}?/g))
        expect(value, file).toMatch(/^(to\(|hrefOf\(|href|`\$\{icons|safeTarget\(|back\.href)/)
    }
  })

  it('look behind in no regular expression: there WebKit finds no emoji by its property', () => {
    for (const { file, text } of files) expect(text, file).not.toMatch(/\(\?<[=!]/)
  })

  it('are short', () => {
    const long = files.filter(({ text }) => text.split('\n').length > 280).map(({ file }) => file)
    expect(long).toEqual([])
  })
})

describe('the words', () => {
  it('explain every reason in a sentence, whatever came with it', () => {
    for (const reason of Object.keys(catalogue))
      if (reason !== 'forbidden_origin')
        expect(explain({ reason, data: {}, status: 0 }), reason).toMatch(/^[A-Z“].*[.]$/)
    expect(explain({ reason: 'of_a_consumer', data: { detail: 'Too early.' }, status: 0 })).toBe('Too early.')
  })

  it('have a sentence for every event', () => {
    expect(Object.keys(sentences).sort()).toEqual(Object.keys(events).sort())
  })
})

import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { analyse } from 'scslre'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parseAst } from 'vitest/node'
import { compileOrigins } from '../src/http/origin.ts'

/** With a regular expression that backtracks, one header can block the event loop. */

const root = fileURLToPath(new URL('..', import.meta.url))
const files = globSync('{src,bin}/**/*.{ts,js}', { cwd: root }).filter((file) => !file.endsWith('.test.ts'))

type Pattern = { source: string; flags: string }
type Found = { literals: Pattern[]; constructed: string[] }

/** Every regular expression literal of a file, and the source of every one constructed at run time. */
function regexesOf(text: string): Found {
  const found: Found = { literals: [], constructed: [] }
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, regex, callee, start, end } = node as Record<string, unknown>
    if (type === 'Literal' && regex) {
      const { pattern, flags } = regex as { pattern: string; flags: string }
      found.literals.push({ source: pattern, flags })
    }
    const isCall = type === 'NewExpression' || type === 'CallExpression'
    if (isCall && (callee as { name?: string }).name === 'RegExp')
      found.constructed.push(text.slice(start as number, end as number))
    for (const child of Object.values(node)) visit(child)
  }
  visit(parseAst(text, { lang: 'ts' }))
  return found
}

/** The causes of more than linear time: two repeats that match the same characters, or one that may start anywhere. */
const slow = ({ source, flags }: Pattern): string[] =>
  analyse({ source, flags }).reports.map((report) => `/${source}/${flags}: ${report.type}`)

describe('no regular expression takes more than linear time', () => {
  it('knows one that does', () => {
    const { literals } = regexesOf(String.raw`
      const a = text.split(/^\s*(identity)?\s*$/i) // and in a comment: /(a+)+b/
      const b: RegExp = c / d / e ? /=+$/ : /^(a+)+$/
      const fine = /^[a-z]([a-z_]*[a-z])?$/`)
    expect(literals.flatMap(slow)).toEqual([
      String.raw`/^\s*(identity)?\s*$/i: Trade`,
      '/=+$/: Move',
      '/^(a+)+$/: Self',
    ])
  })

  it.each(files)('%s', (file) => {
    const { literals } = regexesOf(readFileSync(`${root}/${file}`, 'utf8'))
    expect(literals.flatMap(slow)).toEqual([])
  })

  it('nor does one that is made at run time: each is listed, and checked below', () => {
    const made = files.flatMap((file) => regexesOf(readFileSync(`${root}/${file}`, 'utf8')).constructed)
    expect(made.sort()).toEqual([
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source text itself
      "new RegExp(`^${scheme}://${hostSource}${portSource}$`, 'i')",
      'new RegExp(cursorPattern)',
    ])
  })

  it('of an allowed origin, whatever its pattern', () => {
    const made: Pattern[] = []
    const Real = RegExp
    vi.stubGlobal(
      'RegExp',
      class extends Real {
        constructor(source: string, flags: string) {
          super(source, flags)
          made.push({ source, flags })
        }
      },
    )
    onTestFinished(() => void vi.unstubAllGlobals())
    compileOrigins(['https://*.*.x.example:*', 'http://*:*', 'https://[::1]:8443', 'https://*.a.*.b:443'])
    vi.unstubAllGlobals()
    expect(made).toHaveLength(4)
    expect(made.flatMap(slow)).toEqual([])
  })
})

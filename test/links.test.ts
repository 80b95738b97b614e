import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'bench/**/*.md'], {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
})

const textOf = (page: string): string =>
  readFileSync(join(root, page), 'utf8')
    .replace(/^```.*?^```/gms, '')
    .replace(/`[^`\n]*`/g, (code) => code.slice(1, -1))

/** The anchors of the headings of a page, by GitHub's rule. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, title = ''] of textOf(page).matchAll(/^#+ (.+)$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain.replace(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-')
    let unique = anchor
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`
    anchors.add(unique)
  }
  return anchors
}

it('every link of the pages leads to a file of the repository, and to a heading of it', () => {
  expect(pages).toContain('docs/operations.md')
  const broken: string[] = []
  let followed = 0
  for (const page of pages)
    for (const [, target = ''] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      followed += 1
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : relative(root, join(root, dirname(page), path))
      const isThere = statSync(join(root, file), { throwIfNoEntry: false }) !== undefined
      if (!isThere || (anchor !== undefined && !anchorsOf(file).has(anchor)))
        broken.push(`${page}: ${target}`)
    }
  expect(followed).toBeGreaterThan(30)
  expect(broken).toEqual([])
})

it('every page of the docs is in their index and in the menu of the site', () => {
  const index = readFileSync(join(root, 'docs/README.md'), 'utf8')
  const menu = readFileSync(join(root, 'site/.vitepress/config.ts'), 'utf8')
  const names = globSync('docs/*.md', { cwd: root }).map((page) => page.slice('docs/'.length, -'.md'.length))
  const others = names.filter((name) => name !== 'README')
  expect(others.filter((name) => !index.includes(`](${name}.md)`))).toEqual([])
  expect(others.filter((name) => !menu.includes(`'/${name}'`))).toEqual([])
})

/** Lines that Markdown would not render as intended: headings and tables that merge with the text around them. */
function misreadLines(page: string): string[] {
  const found: string[] = []
  const lines = readFileSync(join(root, page), 'utf8').split('\n')
  let inFence = false
  for (const [index, line] of lines.entries()) {
    if (/^\s*```/.test(line)) inFence = !inFence
    if (inFence) continue
    const [before = '', after = ''] = [lines[index - 1], lines[index + 1]]
    const isCrowded = /^#+ /.test(line) && before !== '' && !before.startsWith('<!--')
    const isHeadless = /^\s*\|/.test(line) && !/^\s*\|/.test(before) && !/^\s*\|[\s:|-]+$/.test(after)
    if (isCrowded || isHeadless) found.push(`${page}:${index + 1}: ${line}`)
  }
  return inFence ? [...found, `${page}: a fence is open`] : found
}

it('headings stand apart, tables have their head, and fences end', () => {
  expect(pages.flatMap(misreadLines)).toEqual([])
})

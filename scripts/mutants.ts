/**
 * `npm run mutants [-- words]` plants bugs in guards, access rule, token scope, cookies, cursors and sign-in, one at a
 * time in a scratch copy of the tree, and runs the tests that must catch them. Words select mutants by file or text.
 * Exit code 1: a mutant survived, so a test is missing or the table is out of date.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { signInGroups } from './mutants-sign-in.ts'
import { type Group, groups } from './mutants-table.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const copied = [
  'src',
  'test',
  'migrations',
  'data',
  'scripts',
  'bench',
  'bin',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
]
const timeoutMs = 300_000

type Verdict = 'killed' | 'SURVIVED' | 'equivalent' | 'OUT OF DATE'

function scratchCopy(): string {
  const tree = mkdtempSync(join(tmpdir(), 'ck-mutants-'))
  for (const name of copied) cpSync(join(root, name), join(tree, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** Whether these tests all pass. A run that hangs counts as failed: it caught the mutant. */
async function pass(tree: string, tests: readonly string[]): Promise<boolean> {
  const vitest = join(tree, 'node_modules', 'vitest', 'vitest.mjs')
  const args = [vitest, 'run', ...tests, '--bail=1', '--maxWorkers=1', '--reporter=dot']
  const child = spawn(process.execPath, args, { cwd: tree, stdio: 'ignore' })
  const timer = setTimeout(() => child.kill('SIGTERM'), timeoutMs)
  const code = await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return code === 0
}

async function judge(
  tree: string,
  { file, tests }: Group,
  [text, by, equivalent]: Group['mutants'][number],
): Promise<Verdict> {
  const path = join(tree, file)
  const source = readFileSync(path, 'utf8')
  const mutated = source.replace(text, () => by)
  if (source.split(text).length !== 2 || !isTypeScript(mutated)) return 'OUT OF DATE'
  if (equivalent !== undefined) return 'equivalent'
  writeFileSync(path, mutated)
  try {
    return (await pass(tree, tests)) ? 'SURVIVED' : 'killed'
  } finally {
    writeFileSync(path, source)
  }
}

/** A mutant that does not parse would fail every test, which proves nothing. */
function isTypeScript(source: string): boolean {
  try {
    return stripTypeScriptTypes(source) !== ''
  } catch {
    return false
  }
}

async function main(words: readonly string[]): Promise<number> {
  const isPicked = (file: string, text: string): boolean =>
    words.length === 0 || words.some((word) => file.includes(word) || text.includes(word))
  const picked = [...groups, ...signInGroups]
    .map((group) => ({ ...group, mutants: group.mutants.filter(([text]) => isPicked(group.file, text)) }))
    .filter(({ mutants }) => mutants.length > 0)
  const tree = scratchCopy()
  const count = new Map<Verdict, number>()
  try {
    for (const group of picked) {
      if (!(await pass(tree, group.tests))) {
        console.error(`The tests of ${group.file} fail without any mutant: ${group.tests.join(' ')}`)
        return 1
      }
      for (const mutant of group.mutants) {
        const verdict = await judge(tree, group, mutant)
        count.set(verdict, (count.get(verdict) ?? 0) + 1)
        const [text, by, equivalent] = mutant
        const change = `${JSON.stringify(text)} → ${JSON.stringify(by)}`
        console.log(`${verdict.padEnd(11)} ${group.file}: ${change}${equivalent ? ` (${equivalent})` : ''}`)
      }
    }
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
  console.log([...count].map(([verdict, n]) => `${n} ${verdict}`).join(', '))
  return count.has('SURVIVED') || count.has('OUT OF DATE') ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))

/** `npm run build`: builds dist for publishing: ES modules and declarations, without tests, and the console. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// Files that were renamed or deleted must not stay in the package.
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
const compiler = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
for (const args of [[compiler, '-p', 'tsconfig.build.json'], ['scripts/console.ts']])
  execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' })

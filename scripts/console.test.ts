import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

it('a clone in a directory that Vite cannot read is told so', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ck-c#-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'scripts'))
  for (const name of ['console.ts', 'licences.ts']) cpSync(`scripts/${name}`, join(dir, 'scripts', name))
  const { status, stderr } = spawnSync(process.execPath, [join(dir, 'scripts', 'console.ts')])
  expect(String(stderr)).toBe(
    `The console cannot be built in ${dir}/: rename the directory so that its path has no # or ?.\n`,
  )
  expect(status).toBe(1)
})

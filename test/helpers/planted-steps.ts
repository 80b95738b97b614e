import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { migrationsDirectory } from '../../src/db/migration/steps.ts'

/** A copy of the package's migrations with additional steps; a text without a declaration is of the kind `expand`. */
export function withSteps(steps: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'ck-migrations-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  cpSync(migrationsDirectory, directory, { recursive: true })
  writeSteps(directory, steps)
  return directory
}

export function writeSteps(directory: string, steps: Record<string, string>): void {
  for (const [name, text] of Object.entries(steps)) {
    const declared = text.startsWith('-- cellkeep:') ? text : `-- cellkeep: kind=expand needs=0.1.0\n${text}`
    writeFileSync(join(directory, `${name}.sql`), declared)
  }
}

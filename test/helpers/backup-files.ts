import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { emptyDatabase, type FreshDatabase } from '../fresh-database.ts'

/** A database to restore into, for one test. */
export async function target(make: () => Promise<FreshDatabase> = emptyDatabase): Promise<FreshDatabase> {
  const made = await make()
  onTestFinished(made.drop)
  return made
}

const digest = (lines: readonly string[]): string =>
  createHash('sha256')
    .update(lines.map((line) => `${line}\n`).join(''))
    .digest('hex')

export const linesOfBackup = async (file: string): Promise<string[]> =>
  gunzipSync(await readFile(file))
    .toString('utf8')
    .split('\n')
    .slice(0, -1)

export const writeLines = (file: string, lines: readonly string[]): Promise<void> =>
  writeFile(file, gzipSync(lines.map((line) => `${line}\n`).join('')))

/** Corrects the counts and checksums, as somebody who hides a change would. */
export function resealed(lines: readonly string[]): string[] {
  const made: string[] = []
  let from = 1
  let total = 0
  for (const line of lines) {
    const own =
      line.startsWith('#{"table_end"') || line.startsWith('#{"end"') ? JSON.parse(line.slice(1)) : {}
    if (own.table_end) {
      const rows = made.slice(from)
      total += rows.length
      made.push(`#${JSON.stringify({ ...own, rows: rows.length, sha256: digest(rows) })}`)
    } else if (own.end) made.push(`#${JSON.stringify({ ...own, rows: total, sha256: digest(made) })}`)
    else made.push(line)
    if (line.startsWith('#{"table"')) from = made.length
  }
  return made
}

/** The same backup in the format before checksums. */
export const inFormat1 = (lines: readonly string[]): string[] =>
  lines
    .filter((line) => !line.startsWith('#{"table_end"'))
    .map((line) => line.replace('"cellkeep_backup":2', '"cellkeep_backup":1'))
    .map((line) => line.replace(/("migrations":\[[^\]]*\]),.*/, '$1}').replace(/,"sha256":"[^"]*"/, ''))

/** Changes the first row of a table. */
export const rowOf =
  (table: string, change: (row: Record<string, unknown>) => unknown) =>
  (lines: string[]): string[] => {
    const at = lines.findIndex((line) => line.startsWith(`#{"table":"${table}"`)) + 1
    return lines.with(at, JSON.stringify(change(JSON.parse(lines[at] as string))))
  }

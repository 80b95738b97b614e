import { createHash } from 'node:crypto'
import { migrationNames } from '../db/migration/steps.ts'
import { isDiskFull, isServerFault, isUnreachable, withoutValues } from '../db/servers/failure.ts'
import { StartError } from '../errors.ts'
import { end, type Header, header, marker, type TableStart, tableEnd, tableStart } from './format.ts'

/** Rows of one table, few enough to hold in memory; also one without rows at the start of a table. */
export type Portion = { table: TableStart; rows: string[]; at: number }

const portionBytes = 1_000_000

/** The header of a backup. Throws a StartError if this version cannot read the rest. */
export function headerOf(line: string | undefined, file: string): Header {
  const found = header.safeParse(ownLine(line ?? '')).data
  if (!found) throw refuse('backup_unreadable', `${file} is not a backup of Cellkeep.`)
  const known = migrationNames()
  if (found.migrations.some((name) => !known.includes(name)))
    throw refuse(
      'backup_of_newer_version',
      `${file} was made by version ${found.version}, whose schema this version does not know. Install that version or a later one.`,
    )
  return found
}

/** What follows the header line `first`, checked against the counts and checksums in the file. */
export async function* portionsOf(
  lines: AsyncIterable<string>,
  first: string,
  { file, isSummed, tables }: { file: string; isSummed: boolean; tables: readonly string[] },
): AsyncGenerator<Portion> {
  const all = createHash('sha256').update(`${first}\n`)
  const begun = new Set<string>()
  let current: { table: TableStart; sum: ReturnType<typeof createHash>; rows: number } | undefined
  let total = 0
  // Line 1 is the header.
  let at = 1
  let rows: string[] = []
  let bytes = 0
  let isOver = false
  const portion = (): Portion => {
    const made = { table: current?.table as TableStart, rows, at }
    rows = []
    bytes = 0
    return made
  }
  const wrong = (why: string) => damaged(file, `at line ${at}`, why)

  for await (const line of lines) {
    at += 1
    // Of two backups in one file, only the first would be restored.
    if (isOver) throw wrong('something follows the end of the backup')
    if (!line.startsWith(marker)) {
      if (current === undefined) throw wrong('a row before any table')
      if (isSummed) {
        all.update(`${line}\n`)
        current.sum.update(`${line}\n`)
      }
      rows.push(line)
      bytes += line.length
      current.rows += 1
      total += 1
      if (bytes > portionBytes) yield portion()
      continue
    }
    if (rows.length > 0) yield portion()
    const own = ownLine(line)
    const last = end.safeParse(own).data
    if (last) {
      if (last.rows !== total) throw wrong(`${total} of ${last.rows} rows found`)
      isOver = true
      if (!isSummed) continue
      const absent = tables.find((name) => !begun.has(name))
      if (current || absent)
        throw wrong(`the ${current ? `end of ${current.table.table}` : `table ${absent}`} is missing`)
      if (last.sha256 !== all.digest('hex')) throw wrong('the checksum of the file does not match')
      continue
    }
    if (isSummed) all.update(`${line}\n`)
    const done = isSummed && tableEnd.safeParse(own).data
    if (done && current?.table.table === done.table_end) {
      const name = done.table_end
      if (done.rows !== current.rows) throw wrong(`${current.rows} of ${done.rows} rows of ${name} found`)
      if (done.sha256 !== current.sum.digest('hex')) throw wrong(`the checksum of ${name} does not match`)
      current = undefined
      continue
    }
    const table = tableStart.safeParse(own).data
    if (!table || !tables.includes(table.table) || begun.has(table.table) || (isSummed && current))
      throw wrong('neither another table begins nor does the backup end')
    begun.add(table.table)
    current = { table, sum: createHash('sha256'), rows: 0 }
    yield portion()
  }
  if (!isOver) throw wrong('the end is missing')
}

function ownLine(line: string): unknown {
  if (!line.startsWith(marker)) return undefined
  try {
    return JSON.parse(line.slice(marker.length))
  } catch {
    return undefined
  }
}

export const refuse = (reason: string, message: string): StartError => new StartError(reason, message, 1)

/** The error for a bad file, without values of rows, which may be secret. A database that fails gets its own error. */
export function damaged(file: string, where: string, why: unknown): unknown {
  const what = why instanceof Error ? (withoutValues(why) as Error).message : why
  if (isServerFault(why)) {
    const failed = (reason: string, fault: string): StartError =>
      new StartError(
        reason,
        `${fault}: ${what}. Nothing was restored. Mend the cause, and run it again.`,
        3,
        { cause: why },
      )
    if (isUnreachable(why)) return failed('db_unreachable', 'The connection to the database was lost')
    const reason = isDiskFull(why) ? 'storage_full' : 'database_failed'
    return failed(reason, `The database failed, which says nothing about ${file}`)
  }
  return refuse('backup_damaged', `${file} is damaged ${where}: ${what}. Nothing was restored.`)
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lacksDescriptors, StartError } from '../../errors.ts'

/** The package's migrations: above `src` and above `dist` alike. */
export const migrationsDirectory = fileURLToPath(new URL('../../../migrations/', import.meta.url))

/** What may run when: `expand` beside running nodes and at every start, `contract` only when asked for. */
export type Kind = 'expand' | 'index' | 'backfill' | 'contract'

export type Step = {
  /** The file name without `.sql`. */
  name: string
  kind: Kind
  /** The oldest version that works on a database with this step. */
  needs: string
  text: string
}

export const namesOf = (steps: readonly Step[]): string[] => steps.map(({ name }) => name)

/** The migrations of a directory in order; a name is the file name without `.sql`. */
export function migrationNames(directory: string = migrationsDirectory): string[] {
  let files: string[]
  try {
    files = readdirSync(directory).filter((file) => file.endsWith('.sql') && file !== 'schema.sql')
  } catch (error) {
    throw unreadable('migrations_missing', directory, error)
  }
  const wrong = files.find((file) => !/^[0-9]{4}_[a-z0-9_]+\.sql$/.test(file))
  if (wrong !== undefined)
    throw refuse(
      'migrations_missing',
      `${join(directory, wrong)} is not named like 0001_name.sql. Rename it.`,
    )
  if (files.length === 0)
    throw refuse('migrations_missing', `${directory} holds no migrations. Install the package again.`)
  return files.map((file) => file.slice(0, -'.sql'.length)).sort()
}

/** The error for a file of the package; `reason` is that of one that is missing. */
const unreadable = (reason: string, path: string, cause: unknown): StartError =>
  lacksDescriptors(cause)
    ? new StartError(
        'descriptors_out',
        `Cannot read ${path}: too many files are open (${cause.code}). Raise the limit (\`ulimit -n\`, or LimitNOFILE in the unit), or find out what has so many open.`,
        1,
        { cause },
      )
    : refuse(reason, `Cannot read ${path}. Install the package again.`, cause)

const declaration = /^-- cellkeep: kind=(expand|index|backfill|contract) needs=(\d+\.\d+\.\d+)\n/

/** The migrations of a directory in order, as the first line of each declares it. */
export const readSteps = (directory: string = migrationsDirectory): Step[] =>
  migrationNames(directory).map((name) => {
    const text = readOwn(join(directory, `${name}.sql`), 'migrations_missing')
    const [, kind, needs] = declaration.exec(text) ?? []
    if (kind === undefined || needs === undefined)
      throw refuse(
        'migrations_missing',
        `${join(directory, name)}.sql does not begin with a line like \`-- cellkeep: kind=expand needs=0.4.0\`. Add it.`,
      )
    return { name, kind: kind as Kind, needs, text }
  })

/** Reads a file of the package; `reason` as for `unreadable`. */
export function readOwn(file: string, reason: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadable(reason, file, error)
  }
}

/** Whether a version is older than `needs`; a pre-release counts as its release. */
export function isOlder(version: string, needs: string): boolean {
  const own = numbersOf(version)
  const at = numbersOf(needs).findIndex((part, index) => part !== own[index])
  return at >= 0 && (own[at] ?? 0) < (numbersOf(needs)[at] ?? 0)
}

const numbersOf = (version: string): number[] => version.split(/[.+-]/, 3).map(Number)

/** The exit code is 3: the database cannot be reached, or its schema is not the one this version needs. */
export const refuse = (reason: string, message: string, cause?: unknown): StartError =>
  new StartError(reason, message, 3, { cause })

/** The statements of a file, without comments. A body between `$$` is part of its statement. */
export const statementsOf = (text: string): string[] =>
  (
    text
      .split('\n')
      .map((line) => line.split('--')[0])
      .join('\n')
      .match(/(?:\$\$[\s\S]*?\$\$|[^;])+/g) ?? []
  )
    .map((statement) => statement.trim())
    .filter(Boolean)

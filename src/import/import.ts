import { z } from 'zod'
import { noPassword } from '../auth/password.ts'
import type { App } from '../core/app.ts'
import { checkVia } from '../core/operate.ts'
import { parseInput } from '../wire/input.ts'
import { noControls } from '../wire/types.ts'
import { type Costs, createCosts } from './costs.ts'
import { FirebaseParams } from './formats.ts'
import { keeping, trying, type Write } from './keep.ts'
import { type Refused, type Row, readLine } from './line.ts'
import { gatherStatistics, settle } from './write.ts'

const Options = z.strictObject({
  /** Separates the ids of different systems. */
  source: z.string().regex(noControls).min(1).max(255),
  /** Checks the lines, and stores nothing. */
  dry_run: z.boolean().default(false),
  /** `fail` stops at the first line that is refused. */
  on_conflict: z.enum(['skip', 'fail']).default('skip'),
  /** For hashes of Firebase: the parameters of its project. */
  firebase: FirebaseParams.optional(),
})

export type ImportOptions = z.input<typeof Options> & {
  /** Recorded in the audit rows. */
  via: string
  on_progress?: ((done: Imported) => void) | undefined
  /** Called for each refused line; awaited. */
  on_refused?: ((refused: Refused) => unknown) | undefined
  /** Stops the import after the current batch. */
  signal?: AbortSignal | undefined
}

export type Imported = {
  lines: number
  imported: number
  /** Lines that an earlier run imported. */
  skipped: number
  refused: number
  /** False: a signal or a refused line stopped the import. */
  complete: boolean
}

type Lines = Iterable<unknown> | AsyncIterable<unknown>

const linesPerBatch = 500

async function run(app: App, lines: Lines, { via, ...given }: ImportOptions): Promise<Imported> {
  checkVia(via)
  const { on_progress, on_refused, signal, ...rest } = given
  const { firebase, dry_run, ...options } = parseInput(Options, rest)
  const costs = createCosts(app.passwords)
  const write = dry_run ? trying(app, options) : keeping(app, { ...options, via, floorMs: costs.floor })
  const done: Imported = { lines: 0, imported: 0, skipped: 0, refused: 0, complete: true }
  for await (const batch of inBatches(lines)) {
    if (signal?.aborted) done.complete = false
    if (!done.complete) break
    const read: Read[] = []
    for (const value of batch)
      read.push(
        await withBearableHash(readLine(value, ++done.lines, { firebase, now: app.db.clock.now() }), costs),
      )
    const { imported, refused, isOver } = await importBatch(read, write, options.on_conflict === 'fail')
    done.imported += imported
    done.refused += refused.length
    if (!isOver) done.skipped += batch.length - imported - refused.length
    done.complete = !isOver
    for (const one of refused) await on_refused?.(one)
    on_progress?.({ ...done })
  }
  if (done.imported > 0 && !dry_run) {
    await settle(app.db)
    await gatherStatistics(app.db)
  }
  return done
}

/**
 * Makes accounts for the users of another system. Each batch commits with its audit rows; another run with the same
 * source continues where this one stopped.
 */
export const importAccounts = Object.assign(run, {
  doc: 'Import the users of another system as accounts, with their password hashes. Takes the lines as an iterable, then the options.',
  input: Options,
  errors: [],
})

type Read = Row | Refused
const isRefused = (read: Read): read is Refused => 'reason' in read

async function withBearableHash(read: Read, costs: Costs): Promise<Read> {
  if (isRefused(read) || read.password_hash === noPassword) return read
  return (await costs.isBearable(read.password_hash)) ? read : refuse(read, 'hash_too_costly')
}

const refuse = ({ line, external_id, username }: Row, reason: Refused['reason']): Refused => ({
  line,
  external_id: external_id === username ? null : external_id,
  reason,
})

type Outcome = { imported: number; refused: Refused[]; isOver: boolean }

/** If the import stops at the first refused line, nothing of that line is stored; a later run begins with it. */
async function importBatch(read: readonly Read[], write: Write, stops: boolean): Promise<Outcome> {
  const bad = stops ? read.findIndex(isRefused) : -1
  const judged = bad < 0 ? read : read.slice(0, bad + 1)
  const refused = judged.filter(isRefused)
  let imported = 0
  const good = judged.filter((one): one is Row => !isRefused(one))
  for (const rows of withoutRepeats(good, stops)) {
    const { made, taken } = await write(rows)
    const byLine = new Map(rows.map((row) => [row.line, row]))
    const clashes = taken.map(({ line, reason }) => refuse(byLine.get(line) as Row, reason)).sort(inOrder)
    // The rows before the first clash are not kept either.
    if (stops && clashes.length > 0) return { imported, refused: clashes.slice(0, 1), isOver: true }
    imported += made.length
    refused.push(...clashes)
  }
  return { imported, refused: refused.sort(inOrder), isOver: bad >= 0 }
}

const inOrder = (a: Refused, b: Refused): number => a.line - b.line

/**
 * Moves a line with the external id of an earlier one to a later part, when the earlier one is known or refused. Also
 * moves a line with its username or e-mail, so that the first gets it, unless a clash stops the import anyway.
 */
function withoutRepeats(rows: readonly Row[], stops: boolean): Row[][] {
  const parts: Row[][] = []
  const seen = new Map<string, number>()
  for (const row of rows) {
    const { external_id, username, email_key } = row
    const keys = [`id ${external_id}`]
    if (!stops) keys.push(`username ${username}`, ...(email_key === null ? [] : [`email ${email_key}`]))
    const at = Math.max(...keys.map((key) => seen.get(key) ?? 0))
    for (const key of keys) seen.set(key, at + 1)
    parts[at] ??= []
    parts[at].push(row)
  }
  return parts
}

async function* inBatches(lines: Lines): AsyncGenerator<unknown[]> {
  let batch: unknown[] = []
  for await (const line of lines) {
    batch.push(line)
    if (batch.length < linesPerBatch) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

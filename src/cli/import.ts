import { once } from 'node:events'
import { createReadStream, type ReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { StartError } from '../errors.ts'
import { FirebaseParams } from '../import/formats.ts'
import type { ImportOptions } from '../import/import.ts'
import { jsonLines } from '../import/json-lines.ts'
import { operations } from '../operations.ts'
import { type Call, subcommand, WrongUsage } from './shell/command.ts'
import { newFile } from './shell/lines.ts'
import type { CommandIo } from './shell/output.ts'
import { withProgress } from './shell/progress.ts'
import { type CommandService, withService } from './with-service.ts'

const options = {
  source: { type: 'string' },
  'dry-run': { type: 'boolean' },
  'on-conflict': { type: 'string' },
  'firebase-params': { type: 'string' },
  report: { type: 'string' },
} as const

export const accountImport = subcommand('account', {
  name: 'import',
  usage:
    'FILE [--source NAME] [--dry-run] [--on-conflict skip|fail] [--firebase-params FILE] [--report FILE]',
  args: 1,
  summary: 'Import the users of another system as accounts, with their password hashes.',
  details:
    'FILE has one JSON object per line; `-` is standard input. `username` is required; `email`, `email_verified`,\n`actor_name`, `created_at`, `external_id` and `password` are optional. `password` is a hash of bcrypt, Argon2, scrypt,\nPBKDF2, Firebase, Django, Keycloak or better-auth, so people keep the passwords they have.\n\nTo continue an import that stopped, run it again with the same --source (default: the name of the file). --dry-run\nkeeps nothing. --report writes the number of each refused line, and why it was refused, to a new file. Exits with 1\nif lines were refused.\n\nExample:\n  cellkeep account import users.jsonl --dry-run --report refused.jsonl',
  options,
  run,
})

async function run({ args: [name = ''], options: given, out, io }: Call<typeof options>): Promise<number> {
  const { 'on-conflict': on_conflict = 'skip', 'dry-run': dry_run = false, report: reportName } = given
  if (on_conflict !== 'skip' && on_conflict !== 'fail') throw new WrongUsage('--on-conflict is skip or fail.')
  const source = given.source ?? (name === '-' ? 'stdin' : basename(name))
  const firebase = await firebaseParams(io, given['firebase-params'])
  const interrupt = new AbortController()
  const input = await open(io, name, interrupt.signal)
  let report: Awaited<ReturnType<typeof newFile>> | undefined
  const reasons: Record<string, number> = {}
  const on_refused: ImportOptions['on_refused'] = async (refused) => {
    reasons[refused.reason] = (reasons[refused.reason] ?? 0) + 1
    await report?.write(`${JSON.stringify(refused)}\n`)
  }
  const work = async ({ app }: CommandService) => {
    // Not before there is a database: an empty report would be in the way of the next try.
    if (reportName !== undefined) report = await newFile(resolve(io.cwd, reportName))
    return await withProgress(
      io,
      'lines',
      (progress) =>
        operations.importAccounts(app, jsonLines(input.chunks), {
          ...{ via: 'cli', source, dry_run, on_conflict, signal: interrupt.signal, on_refused },
          ...(firebase && { firebase }),
          on_progress: ({ lines }) => progress(lines, input.linesAbout(lines)),
        }),
      { everySeconds: out.json ? 0 : 5 },
    )
  }
  try {
    const done = await withService(io, work, { interrupt })
    const hint =
      done.refused > 0 && !report ? ['Run it again with --report FILE to see which lines, and why.'] : []
    out.result({ ...done, reasons, source, dry_run }, [{ ...done, ...reasons }, ...hint])
    await report?.end()
    if (!done.complete && interrupt.signal.aborted) return interrupt.signal.reason
    return done.refused > 0 ? 1 : 0
  } catch (error) {
    // Half a report would be in the way too: the next try refuses the same lines.
    await report?.discard()
    throw error
  }
}

type Input = {
  chunks: AsyncIterable<Buffer | string>
  /** How many lines there are, if `lines` are read. */
  linesAbout(lines: number): number | undefined
}

async function open({ cwd, stdin }: CommandIo, name: string, interrupt: AbortSignal): Promise<Input> {
  if (name === '-') return { chunks: untilCut(stdin as Readable, interrupt), linesAbout: () => undefined }
  const file = resolve(cwd, name)
  const refused = (error: NodeJS.ErrnoException) => Promise.reject(unreadable(file, error))
  const { size } = await stat(file).catch(refused)
  const stream = createReadStream(file)
  // Before the database is opened: nobody listens for an error of the stream until it is read.
  await once(stream, 'open').catch(refused)
  return {
    chunks: chunksOf(stream, file),
    linesAbout: (lines) => Math.round((lines * size) / stream.bytesRead),
  }
}

/** A signal ends the import even while the program that writes the lines sends none. */
async function* untilCut(stdin: Readable, interrupt: AbortSignal): AsyncGenerator<Buffer | string> {
  try {
    yield* addAbortSignal(interrupt, stdin)
  } catch (error) {
    if (!interrupt.aborted) throw error
  }
}

async function* chunksOf(stream: ReadStream, file: string): AsyncGenerator<Buffer> {
  try {
    yield* stream
  } catch (error) {
    throw unreadable(file, error as NodeJS.ErrnoException)
  }
}

async function firebaseParams(
  { cwd }: CommandIo,
  name: string | undefined,
): Promise<FirebaseParams | undefined> {
  if (name === undefined) return undefined
  const file = resolve(cwd, name)
  const text = await readFile(file, 'utf8').catch((error) => Promise.reject(unreadable(file, error)))
  try {
    return FirebaseParams.parse(JSON.parse(text))
  } catch {
    // No cause: it would show the key.
    throw new WrongUsage(
      `${file} must be a JSON object with base64_signer_key, base64_salt_separator, rounds and mem_cost.`,
    )
  }
}

const unreadable = (file: string, error: NodeJS.ErrnoException): StartError =>
  new StartError(
    'unreadable',
    `${file} ${error.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${error.code}`}. Name a file that this user may read.`,
    1,
    { cause: error },
  )

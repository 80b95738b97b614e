import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Client, createClient } from '../../src/client/client.ts'
import { postmasterPid, stopPostgres } from '../../src/embedded/postgres-process.ts'
import { furnish } from '../kept-database.ts'
import { inMemory } from '../memory.ts'

/** The program that runs as `cellkeep`: the bundle in a test run, otherwise the sources. */
export const entry =
  process.env.CELLKEEP_TEST_PROGRAM ?? fileURLToPath(new URL('../../bin/cellkeep.js', import.meta.url))

const running = new Map<ChildProcess, string>()

/**
 * A parent for working directories, in memory by default, because `initdb` and each start would wait for the disk.
 * Processes that still run in one are killed before it is removed.
 */
export async function workspace(within = inMemory() ?? tmpdir()): Promise<{
  make(name: string): Promise<string>
  /** Makes a working directory with a new database. */
  furnished(name: string): Promise<string>
  remove(): Promise<void>
}> {
  const root = await realpath(await mkdtemp(join(within, 'ck-run-')))
  // If the test runs as root, the user of the database must be able to enter.
  await chmod(root, 0o711)
  const make = async (name: string): Promise<string> => {
    const dir = join(root, name)
    await mkdir(dir)
    return dir
  }
  return {
    make,
    furnished: async (name) => {
      const dir = await make(name)
      await furnishPlace(dir)
      return dir
    },
    remove: async () => {
      for (const [child, cwd] of running)
        if (cwd.startsWith(root)) {
          child.kill('SIGKILL')
          await once(child, 'close')
        }
      for (const name of await readdir(root))
        await stopPostgres(join(root, name, '.cellkeep', 'db')).catch(() => {})
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** Gives the working directory a new database. */
export async function furnishPlace(cwd: string): Promise<void> {
  // The processes run the bundled PostgreSQL, which might not open a database of another version.
  if (!process.env.CELLKEEP_POSTGRES_BIN) await furnish(join(cwd, '.cellkeep'))
}

export type Ended = { code: number | null; stdout: string[]; stderr: string }

export type ServerProcess = {
  cwd: string
  pid: number
  /** From the start message. */
  url: string
  client: Client
  stderr(): string
  /** Every line of standard output so far, parsed. */
  log(): Record<string, unknown>[]
  /** The first line logged with this message, past or future. */
  logged(msg: string): Promise<Record<string, unknown>>
  /** Sends the signal and waits for the exit. */
  end(signal: NodeJS.Signals): Promise<Ended>
  signal(signal: NodeJS.Signals): void
  ended: Promise<Ended>
}

export type Environment = Record<string, string>

/**
 * Runs `cellkeep <args>` until it exits, with `input` on standard input; `program` may be another release, and `shell`
 * as in `startServer`.
 */
export async function runCellkeep(
  cwd: string,
  args: string[],
  env: Environment = {},
  input = '',
  program = entry,
  shell = '',
): Promise<Ended> {
  const child = spawnCellkeep(cwd, args, env, 'pipe', shell, program)
  child.stdin?.end(input)
  return watch(child).ended
}

/**
 * Runs `cellkeep start` on a free port; rejects with its output if it exits before it listens. `shell` is a script that
 * runs it as `"$@"`, after it has set limits or redirected output.
 */
export async function startServer(
  cwd: string,
  env: Environment = {},
  shell = '',
  program = entry,
): Promise<ServerProcess> {
  const child = spawnCellkeep(cwd, ['start'], { CELLKEEP_PORT: '0', ...env }, 'ignore', shell, program)
  const seen = watch(child)
  const url = await seen.listening
  return {
    cwd,
    pid: child.pid as number,
    url,
    client: createClient({ url, jar: true }),
    stderr: seen.stderr,
    log: () => seen.lines().map((line) => JSON.parse(line)),
    logged: async (msg) => JSON.parse(await seen.line((line) => JSON.parse(line).msg === msg)),
    signal: (signal) => void child.kill(signal),
    end: (signal) => {
      child.kill(signal)
      return seen.ended
    },
    ended: seen.ended,
  }
}

/** The first account, which `bootstrap` creates. */
export const firstAccount = { username: 'ada', password: 'correct horse battery' } as const

/** Creates the first account with the token file, as an operator would; the client is then signed in. */
export async function bootstrap({ cwd, client }: ServerProcess): Promise<void> {
  const token = await readFile(join(cwd, '.cellkeep', 'bootstrap_token'), 'utf8')
  await client.account.bootstrap({ token: token.trim(), ...firstAccount })
}

function spawnCellkeep(
  cwd: string,
  args: string[],
  env: Environment,
  stdin: 'ignore' | 'pipe' = 'ignore',
  shell = '',
  main = entry,
): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('CELLKEEP_'))
  const [program = '', ...rest] = [
    ...(shell && ['/bin/sh', '-c', shell, 'sh']),
    process.execPath,
    // While the program loads, nearly all objects are there to stay: clearing them away is a tenth of a start. Scripts
    // measure memory as users have it.
    ...(process.env.CELLKEEP_TEST_PROGRAM ? ['--min-semi-space-size=8'] : []),
    main,
    ...args,
  ]
  const child = spawn(program, rest, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: [stdin, 'pipe', 'pipe'],
  })
  running.set(child, cwd)
  child.once('close', () => running.delete(child))
  return child
}

function watch(child: ChildProcess) {
  const lines: string[] = []
  let stderr = ''
  const checks = new Set<() => void>()
  const notify = () => {
    for (const check of checks) check()
  }
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    lines.push(line)
    notify()
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    notify()
  })
  let isEnded = false
  const ended = once(child, 'close').then(([code]): Ended => {
    isEnded = true
    notify()
    return { code, stdout: lines, stderr }
  })
  const wait = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const check = () => {
        const found = find()
        if (found !== undefined) resolve(found)
        else if (isEnded) reject(new Error(`The process ended first.\n${stderr}\n${lines.join('\n')}`))
        else return
        checks.delete(check)
      }
      checks.add(check)
      check()
    })
  const listening = wait(() => /listens on (http:\S+)\n.*\n\n$/s.exec(stderr)?.[1])
  // Not awaited if the process is meant to exit.
  listening.catch(() => {})
  return {
    lines: () => lines,
    stderr: () => stderr,
    ended,
    listening,
    line: (matches: (line: string) => boolean) => wait(() => lines.find(matches)),
  }
}

/** The process id of the database in a working directory. */
export const databaseOf = (cwd: string): Promise<number | undefined> =>
  postmasterPid(join(cwd, '.cellkeep', 'db'))

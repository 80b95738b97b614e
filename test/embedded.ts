import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll } from 'vitest'
import { type Embedded, type EmbeddedOptions, startEmbedded } from '../src/embedded/embedded.ts'
import { postmasterPid, stopPostgres } from '../src/embedded/postgres-process.ts'
import { silentLog } from '../src/log/log.ts'
import { inMemory } from './memory.ts'

export type Event = {
  event: 'ready' | 'failed' | 'log' | 'notice' | 'lost'
  connection: pg.ClientConfig
  dataDir: string
  reason: string
  message: string
  text: string
}

const script = fileURLToPath(new URL('./embedded-child.ts', import.meta.url))
const run = promisify(execFile)
export const isRoot = process.getuid?.() === 0

/** A directory for data dirs. A database that still runs in it after the test file is stopped, and fails the file. */
export async function testDirectory(): Promise<string> {
  const dir = await realpath(await mkdtemp(join(inMemory() ?? tmpdir(), 'ck-test-')))
  // If the tests run as root, the user of the database must be able to enter.
  await chmod(dir, 0o711)
  afterAll(async () => {
    for (const close of open) await close()
    open.clear()
    const left: string[] = []
    for (const name of await readdir(dir)) {
      if ((await postmasterPid(join(dir, name, 'db'))) === undefined) continue
      left.push(name)
      await stopPostgres(join(dir, name, 'db'))
    }
    await rm(dir, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`A database was left running in ${left.join(', ')}`)
  })
  return dir
}

/** The PostgreSQL to test with, by default the bundled one. */
export const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined

/** Databases left open by failed tests; a serving process would restart its database when it is stopped. */
const open = new Set<() => Promise<unknown>>()

/** Opens a data dir in this process. */
export async function start(dataDir: string, role: EmbeddedOptions['role'] = 'serve'): Promise<Embedded> {
  const embedded = await startEmbedded({ dataDir, role, postgresBin, log: silentLog })
  open.add(embedded.close)
  return embedded
}

type ChildOptions = Partial<EmbeddedOptions> & { dataDir: string; uid?: number }

/** Starts a process that opens a data dir, and waits until it has or failed. */
export async function startChild(options: ChildOptions) {
  const child = spawnChild(options)
  const first = await child.saw(({ event }) => event === 'ready' || event === 'failed')
  return { ...first, ...child }
}

export function spawnChild(options: ChildOptions) {
  const child = spawn(
    process.execPath,
    [script, JSON.stringify({ role: 'serve', postgresBin, ...options })],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const seen: Event[] = []
  const waiting = new Set<() => void>()
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const notify = () => {
    for (const check of waiting) check()
  }
  createInterface({ input: child.stdout })
    .on('line', (text) => {
      seen.push(JSON.parse(text))
      notify()
    })
    .on('close', notify)
  /** Resolves to the first matching event, past or future. */
  const saw = (matches: (event: Event) => boolean): Promise<Event> =>
    new Promise((resolve, reject) => {
      const check = () => {
        const found = seen.find(matches)
        if (found !== undefined) resolve(found)
        else if (child.stdout.readableEnded) reject(new Error(`Only saw ${JSON.stringify(seen)}`))
        else return
        waiting.delete(check)
      }
      waiting.add(check)
      check()
    })
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  open.add(kill)
  return {
    pid: child.pid as number,
    seen,
    saw,
    exited,
    /** Makes it release the database; if it was using it, it must exit with success. */
    close: async () => {
      child.stdin.end()
      const code = await exited
      if (code !== 0 && seen.some(({ event }) => event === 'ready')) throw new Error(`It ended with ${code}`)
    },
    kill,
  }
}

/** Runs one statement on a new connection. */
export async function query(connection: pg.ClientConfig, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** The process ids of a data dir's server and its children; empty if it does not run. */
export async function serverProcesses(dataDir: string): Promise<number[]> {
  const server = await postmasterPid(join(dataDir, 'db'))
  return server === undefined ? [] : [server, ...(await children(server))]
}

/** Sends a signal to a process that may have ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Signals the server of a data dir and its children; twice, to reach those that it starts meanwhile. */
export async function signalServer(dataDir: string, name: NodeJS.Signals): Promise<void> {
  for (let round = 0; round < 2; round++) for (const pid of await serverProcesses(dataDir)) signal(pid, name)
}

/** Those of the processes that are alive, without zombies and those that are exiting. */
export async function alive(pids: number[]): Promise<number[]> {
  return (await processes()).filter(({ pid }) => pids.includes(pid)).map(({ pid }) => pid)
}

const children = async (parent: number) =>
  (await processes()).filter(({ ppid }) => ppid === parent).map(({ pid }) => pid)

async function processes(): Promise<{ pid: number; ppid: number }[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=', '-o', 'ppid=', '-o', 'stat=', '-o', 'vsz='])
  return (
    stdout
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      // A process without memory has already ended; the kernel is only cleaning up.
      .filter(([, , state, size]) => !state?.startsWith('Z') && size !== '0')
      .map(([pid, ppid]) => ({ pid: Number(pid), ppid: Number(ppid) }))
  )
}

import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { chmod, cp, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { LoadJob, LoadResult } from './load.ts'

/** Cleanup of everything that was started, last in first out; runs after a failure or a signal too. */
export class Started {
  readonly #steps: (() => Promise<unknown>)[] = []
  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => void this.close().finally(() => process.exit(1)))
  }
  add(step: () => Promise<unknown>): void {
    this.#steps.push(step)
  }
  async close(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) await step()
  }
}

/** A temporary directory that the database user can traverse. */
export async function temporary(started: Started): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'ck-bench-')))
  await chmod(dir, 0o711)
  started.add(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/** Forks a script of this directory. */
export function helper(started: Started, script: string): ChildProcess {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)))
  started.add(() => end(child))
  return child
}

/** Sends one message to a helper and resolves to its reply; rejects if it exits instead. */
export async function ask<T>(child: ChildProcess, message?: object): Promise<T> {
  const gone = new AbortController()
  const answer = once(child, 'message', { signal: gone.signal })
  const onExit = () => gone.abort(new Error('A helper process of the bench exited; see above.'))
  child.once('exit', onExit)
  if (message) child.send(message)
  try {
    return (await answer)[0] as T
  } finally {
    child.off('exit', onExit)
  }
}

/** A load runner; responses other than 2xx fail the bench. */
export function loader(started: Started): (job: LoadJob) => Promise<LoadResult> {
  const child = helper(started, 'load.ts')
  return async (job) => {
    const result = await ask<LoadResult>(child, job)
    if (result.failed > 0)
      throw new Error(
        `${result.failed} of ${result.count} requests failed: ${job.requests[0]?.slice(0, 400)}`,
      )
    return result
  }
}

const root = fileURLToPath(new URL('..', import.meta.url))
let isBuilt = false

/** The command as it is published: beside no sources, which the one here would run, with 37 MB for their types. */
export async function published(started: Started): Promise<string> {
  if (!isBuilt) execFileSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' })
  isBuilt = true
  const dir = await temporary(started)
  for (const name of ['bin', 'package.json']) await cp(join(root, name), join(dir, name), { recursive: true })
  await symlink(join(root, 'dist'), join(dir, 'dist'))
  return join(dir, 'bin/cellkeep.js')
}

/** The product as users start it: `cellkeep start` with the embedded database and a log file. */
export async function product(
  started: Started,
  dataDir: string,
  env: Record<string, string>,
  nodeOptions: string[] = [],
): Promise<{ port: number; pid: number; logFile: string }> {
  const logFile = join(dataDir, '..', 'server.log')
  const log = openSync(logFile, 'a')
  const bin = await published(started)
  const child = spawn(process.execPath, [...nodeOptions, bin, 'start'], {
    stdio: ['ignore', log, 'pipe'],
    cwd: join(dataDir, '..'),
    env: { PATH: process.env.PATH, CELLKEEP_DATA_DIR: dataDir, CELLKEEP_PORT: '0', ...env },
  })
  started.add(() => end(child))
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    said.push(line)
    const [, port] = /listens on http:\/\/\S+:(\d+)/.exec(line) ?? []
    if (port === undefined) continue
    child.stderr?.resume()
    return { port: Number(port), pid: child.pid as number, logFile }
  }
  throw new Error(`The product did not start:\n${said.join('\n')}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

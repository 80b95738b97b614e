import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HashAnswer, HashFunctions, HashJob } from './hash-worker.ts'

/** Computes on another thread what a function of `@node-rs/argon2` returns or throws. */
export type RunHash = <K extends keyof HashFunctions>(
  name: K,
  ...args: Parameters<HashFunctions[K]>
) => Promise<ReturnType<HashFunctions[K]>>

/** A thread without work for so long ends; the next password starts one in some 30 ms. */
const idleMs = 60_000

const file = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url)

type Thread = { worker: Worker; settle: (answer: HashAnswer) => void; idle?: NodeJS.Timeout }

/** Threads at rest, the one that rested last at the end; shared by all services of the process. */
const resting: Thread[] = []

/**
 * Hashes have threads of their own, as many as jobs are given at once. On libuv's pool, files and host names
 * would queue behind them, and their priority would be that of everything else (contract 2, section 4).
 */
export const runHash: RunHash = (name, ...args) => {
  const thread = resting.pop() ?? start()
  clearTimeout(thread.idle)
  return new Promise((resolve, reject) => {
    thread.settle = (answer) =>
      'error' in answer
        ? reject(answer.error)
        : resolve(answer.value as ReturnType<HashFunctions[typeof name]>)
    // A job keeps the process alive, a thread at rest does not.
    thread.worker.ref()
    thread.worker.postMessage({ name, args } satisfies HashJob)
  })
}

function start(): Thread {
  // Flags of the process, such as a profiler's or a loader's, are not for these threads.
  const worker = new Worker(file, { name: 'cellkeep hash', execArgv: [] })
  const thread: Thread = { worker, settle: () => {} }
  worker.on('message', (answer: HashAnswer) => {
    rest(thread)
    thread.settle(answer)
  })
  worker.on('error', (error) => thread.settle({ error }))
  worker.on('exit', (code) => {
    forget(thread)
    thread.settle({ error: new Error(`A hashing thread ended with code ${code}.`) })
  })
  return thread
}

function rest(thread: Thread): void {
  thread.worker.unref()
  thread.idle = setTimeout(() => {
    forget(thread)
    void thread.worker.terminate()
  }, idleMs).unref()
  resting.push(thread)
}

function forget(thread: Thread): void {
  const at = resting.indexOf(thread)
  if (at >= 0) resting.splice(at, 1)
}

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

type Thread = {
  worker: Worker
  /** Who gets the next answers, in the order of the jobs given. */
  waiting: ((answer: HashAnswer) => void)[]
  idle?: NodeJS.Timeout
}

/** Threads at rest, the one that rested last at the end; shared by all services of the process. */
const resting: Thread[] = []

/** Jobs that a thread has use for: one at work, and two ready, as it answers in pairs in a storm (hash-worker.ts). */
export const jobsPerThread = 3

/**
 * Computes on at most `count` threads. A thread may be given jobs before it is done with one: else it would idle
 * until the event loop comes round. Hashes have threads of their own, as on libuv's pool files and host
 * names would queue behind them, at the priority of everything else (contract 2, section 4).
 */
export function hashThreads(count: number): RunHash {
  const working = new Set<Thread>()
  return (name, ...args) => {
    const thread = working.size < count ? awake() : leastBusy(working)
    working.add(thread)
    return new Promise((resolve, reject) => {
      thread.waiting.push((answer) => {
        if (thread.waiting.length === 0) working.delete(thread)
        if ('error' in answer) reject(answer.error)
        else resolve(answer.value as ReturnType<HashFunctions[typeof name]>)
      })
      thread.worker.postMessage({ name, args } satisfies HashJob)
    })
  }
}

const leastBusy = (threads: Iterable<Thread>): Thread =>
  [...threads].reduce((least, one) => (one.waiting.length < least.waiting.length ? one : least))

function awake(): Thread {
  const thread = resting.pop() ?? start()
  clearTimeout(thread.idle)
  // A job keeps the process alive, a thread at rest does not.
  thread.worker.ref()
  return thread
}

function start(): Thread {
  // Flags of the process, such as a profiler's or a loader's, are not for these threads.
  const worker = new Worker(file, { name: 'cellkeep hash', execArgv: [] })
  const thread: Thread = { worker, waiting: [] }
  const fail = (error: unknown): void => {
    forget(thread)
    for (const settle of thread.waiting.splice(0)) settle({ error })
  }
  worker.on('message', (answers: HashAnswer[]) => {
    for (const answer of answers) thread.waiting.shift()?.(answer)
    if (thread.waiting.length === 0) rest(thread)
  })
  worker.on('error', fail)
  worker.on('exit', (code) => fail(new Error(`A hashing thread ended with code ${code}.`)))
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

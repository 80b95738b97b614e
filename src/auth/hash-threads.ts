import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HashAnswer, HashFunctions, HashJob } from './hash-worker.ts'

/** Calls a function of `@node-rs/argon2` on another thread. */
export type RunHash = <K extends keyof HashFunctions>(
  name: K,
  ...args: Parameters<HashFunctions[K]>
) => Promise<ReturnType<HashFunctions[K]>>

/** An idle thread ends after this time; starting another takes about 30 ms. */
const idleMs = 60_000

const file = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url)

type Thread = {
  worker: Worker
  /** Callbacks for the next answers, in the order of the jobs. */
  waiting: ((answer: HashAnswer) => void)[]
  idle?: NodeJS.Timeout
}

/** Idle threads, the latest last; shared by all services of the process. */
const resting: Thread[] = []

/** Jobs to hand to each thread: one running and two ready, as it answers in pairs under load (hash-worker.ts). */
export const jobsPerThread = 3

/**
 * Computes on at most `count` threads. A busy thread gets further jobs in advance, so that it does not idle
 * until the event loop comes round. Hashes have their own threads: in libuv's pool, file access and DNS
 * lookups would queue behind them, and they could not have a lower priority.
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
  // A job keeps the process alive, an idle thread does not.
  thread.worker.ref()
  return thread
}

function start(): Thread {
  // Don't inherit flags of the process, such as those of a profiler or loader.
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

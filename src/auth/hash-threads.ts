import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HashAnswer, HashFunctions, HashJob, PriorityKept } from './hash-worker.ts'

/** Calls a function that hashes or verifies on another thread. */
export type RunHash = <K extends keyof HashFunctions>(
  name: K,
  ...args: Parameters<HashFunctions[K]>
) => Promise<ReturnType<HashFunctions[K]>>

/** An idle thread ends after this time; starting another takes about 30 ms. */
const idleMs = 60_000

const file = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url)

type Thread = {
  worker: Worker
  /** Settles the running job. */
  settle?: ((answer: HashAnswer) => void) | undefined
  idle?: NodeJS.Timeout
}

let tellPriorityKept: ((reason: string) => void) | undefined

/**
 * Calls back, once per process, if hashing threads cannot have a lower priority here. Only the first listener is told.
 */
export function onPriorityKept(tell: (reason: string) => void): void {
  tellPriorityKept ??= tell
}

/** Idle threads, the latest last; shared by all services of the process. */
const resting: Thread[] = []

/**
 * Computes on an idle thread, or a new one; the caller bounds how many jobs run. Hashes have their own threads: in
 * libuv's pool, file access and DNS lookups would queue behind them, and they could not have a lower priority.
 */
export const runHash: RunHash = (name, ...args) => {
  const thread = resting.pop() ?? start()
  clearTimeout(thread.idle)
  // A job keeps the process alive, an idle thread does not.
  thread.worker.ref()
  return new Promise((resolve, reject) => {
    thread.settle = (answer) => {
      if ('error' in answer) reject(answer.error)
      else resolve(answer.value as ReturnType<HashFunctions[typeof name]>)
    }
    thread.worker.postMessage({ name, args } satisfies HashJob)
  })
}

function start(): Thread {
  // Do not inherit flags of the process, such as those of a profiler or loader.
  const worker = new Worker(file, { name: 'cellkeep hash', execArgv: [] })
  const thread: Thread = { worker }
  const fail = (error: unknown): void => {
    forget(thread)
    thread.settle?.({ error })
  }
  worker.on('message', (answer: HashAnswer | PriorityKept) => {
    if ('priorityKept' in answer) {
      tellPriorityKept?.(answer.priorityKept)
      tellPriorityKept = () => {}
      return
    }
    rest(thread)
    thread.settle?.(answer)
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

import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { basename } from 'node:path'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import { verifyForeign } from './foreign-hashes.ts'

/** The code of a hashing thread (hash-threads.ts): one job, one answer. */
const functions = { hash: hashSync, verify: verifySync, verifyForeign }

export type HashFunctions = typeof functions
export type HashJob = { name: keyof HashFunctions; args: unknown[] }
export type HashAnswer = { value: unknown } | { error: unknown }
/** Sent by a thread before its first answer if it cannot lower its priority. */
export type PriorityKept = { priorityKept: string }

const port = parentPort as MessagePort
yieldToOthers()
port.on('message', (job: HashJob) => port.postMessage(answer(job)))

function answer({ name, args }: HashJob): HashAnswer {
  try {
    return { value: Reflect.apply(functions[name], undefined, args) }
  } catch (error) {
    return { error }
  }
}

/** Lowers the priority of this thread where threads have their own (Linux): requests and database go first. */
function yieldToOthers(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), constants.priority.PRIORITY_BELOW_NORMAL)
  } catch (error) {
    // A sandbox that forbids it, or no /proc: hashes compete like everything else.
    port.postMessage({ priorityKept: String(error) } satisfies PriorityKept)
  }
}

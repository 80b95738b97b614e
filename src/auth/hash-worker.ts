import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { basename } from 'node:path'
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'

/** The code of a hashing thread (hash-threads.ts): runs one job at a time, answers in order and in lists. */
const functions = { hash: hashSync, verify: verifySync }

export type HashFunctions = typeof functions
export type HashJob = { name: keyof HashFunctions; args: unknown[] }
export type HashAnswer = { value: unknown } | { error: unknown }

yieldToOthers()
const port = parentPort as MessagePort
port.on('message', work)

/**
 * Under load answers are sent in pairs: a hash evicts everything else from the CPU caches, so the work after a
 * login costs a fifth less when two logins continue together. With fewer than two jobs ready nothing waits.
 */
function work(first: HashJob): void {
  const ready = [first]
  let done: HashAnswer[] = []
  for (let job = ready.shift(); job; job = ready.shift()) {
    done.push(answer(job))
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
      ready.push(next.message)
    if (done.length < 2 && ready.length >= 2) continue
    port.postMessage(done)
    done = []
  }
}

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
  } catch {
    // No /proc: hashes compete like everything else.
  }
}

/**
 * Loaded into the server (`--import`): appends a line to the file in `ATTACK_STALLS` for each turn of its event loop
 * that computes for long, with the milliseconds. It counts the processor time of the main thread, which other
 * programs on the machine do not lengthen; where the system does not tell that, the time that has passed.
 */
import { appendFileSync, readFileSync } from 'node:fs'

const path = process.env.ATTACK_STALLS
const shortMs = 20

function computedMs(): number {
  try {
    const [computed] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
    return Number(computed) / 1_000_000
  } catch {
    return performance.now()
  }
}

if (path && process.argv[1]?.endsWith('cellkeep.js')) {
  let before = computedMs()
  setInterval(() => {
    const now = computedMs()
    if (now - before > shortMs) appendFileSync(path, `${Math.round(now - before)}\n`)
    before = now
  }, 5).unref()
}

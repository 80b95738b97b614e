/**
 * Loaded into the server (`--import`): for each turn of the event loop that computes for long, it appends a line with
 * the milliseconds to the file in `ATTACK_STALLS`. It measures the processor time of the main thread, which other
 * programs do not lengthen, or the elapsed time where the system does not report that.
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

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fillLog } from '../../test/helpers/log-lines.ts'
import type { Fault } from './fault.ts'
import { seconds, startLoad } from './load.ts'

const requests = 30_000

export const logReader: Fault = {
  name: 'The reader of the log stops reading',
  how: 'standard output is a pipe that nobody reads, for 30,000 more requests; then `SIGTERM`',
  run: async (cwd) => {
    const pipe = join(cwd, 'log')
    execFileSync('mkfifo', [pipe])
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
    const load = await startLoad(cwd, {}, `exec "$@" >'${pipe}'`)
    await fillLog(load.server.url, 1000)
    load.strike()
    const before = residentMiB(load.server.pid)
    await fillLog(load.server.url, requests)
    const grown = residentMiB(load.server.pid) - before
    const ready = await (await fetch(`${load.server.url}/ready`)).text()
    assert.match(ready, /log_lines_dropped/)
    const report = await load.end()
    const asked = performance.now()
    assert.equal((await load.server.end('SIGTERM')).code, 0)
    const stopped = seconds(performance.now() - asked)
    closeSync(reader)
    return {
      ...report,
      seen: `${report.seen}<br>memory grows by ${Math.max(0, grown)} MiB; \`SIGTERM\` ends it in ${stopped}`,
    }
  },
  note: 'Log lines beyond about 4 MiB are lost; `/ready` warns, and once the log is read again, a line says how many are missing.',
}

const residentMiB = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)

import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'
import { serverProcesses, signal } from './processes.ts'

export const stoppedPostgres: Fault = {
  name: 'PostgreSQL stands still',
  how: '`SIGSTOP` to every process of PostgreSQL for 20 s, as a stalled disk or a frozen machine does',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    const [postmaster = 0] = await serverProcesses(cwd)
    load.strike()
    // First, so that it starts no other process; a worker may have ended since they were listed.
    process.kill(postmaster, 'SIGSTOP')
    const all = await serverProcesses(cwd)
    for (const pid of all) signal(pid, 'SIGSTOP')
    await delay(20_000)
    for (const pid of all) signal(pid, 'SIGCONT')
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'A statement is given up 5 s after `CELLKEEP_STATEMENT_TIMEOUT_MS` (10 s) at the latest, however dead the database is.',
}

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { signalServer } from '../../test/embedded.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const stoppedPostgres: Fault = {
  name: 'PostgreSQL stands still',
  how: '`SIGSTOP` to every process of PostgreSQL for 20 s, as a stalled disk or a frozen machine does',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    const dataDir = join(cwd, '.cellkeep')
    load.strike()
    await signalServer(dataDir, 'SIGSTOP')
    await delay(20_000)
    await signalServer(dataDir, 'SIGCONT')
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'A statement is given up at the latest 5 s after `CELLKEEP_STATEMENT_TIMEOUT_MS` (10 s), even if the database does not react at all.',
}

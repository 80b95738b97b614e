import { databaseOf } from '../../test/helpers/server-process.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const killPostgres: Fault = {
  name: 'PostgreSQL is killed',
  how: '`kill -9` of the embedded PostgreSQL',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    load.strike()
    process.kill((await databaseOf(cwd)) as number, 'SIGKILL')
    await load.refusal()
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'The server starts it again; the recovery replays what was written since the last checkpoint.',
}

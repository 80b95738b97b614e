import { setTimeout as delay } from 'node:timers/promises'
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
    const killed = (await databaseOf(cwd)) as number
    process.kill(killed, 'SIGKILL')
    // Does not wait for a refusal: often every call waits for the new database, and none is refused.
    for (let pid: number | undefined = killed; !pid || pid === killed; pid = await databaseOf(cwd))
      await delay(20)
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'The server restarts it; the recovery replays what was written since the last checkpoint.',
}

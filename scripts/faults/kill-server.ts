import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const killServer: Fault = {
  name: 'The server is killed',
  how: '`kill -9` of the server; it is started again at once',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    load.strike()
    load.server.signal('SIGKILL')
    await load.server.ended
    await load.restart()
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'The next start takes over the database that still runs. Add the delay of your supervisor.',
}

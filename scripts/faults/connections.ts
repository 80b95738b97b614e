import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { connectionTo } from '../../src/embedded/postgres-process.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const connections: Fault = {
  name: 'No connection is left',
  how: 'every connection that PostgreSQL takes is taken by others for 5 s, and the server’s own are cut',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    const to = connectionTo(join(cwd, '.cellkeep', 'socket'), 'postgres')
    const taken: pg.Client[] = []
    const take = async (): Promise<boolean> => {
      const client = new pg.Client(to)
      client.on('error', () => {})
      const isTaken = await client.connect().then(
        () => true,
        () => false,
      )
      if (isTaken) taken.push(client)
      return isTaken
    }
    while (await take());
    load.strike()
    const until = performance.now() + 5000
    // Connections that the server releases are taken, too.
    while (performance.now() < until) {
      await taken[0]?.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'cellkeep' and backend_type = 'client backend'`,
      )
      while (await take());
      await delay(50)
    }
    await Promise.all(taken.map((client) => client.end()))
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
}

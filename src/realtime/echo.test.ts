import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { sql } from '../db/db.ts'
import { Echo } from './echo.ts'

const test = await serviceForFile()
const { version } = await test.service.app.db.one<{ version: number }>(
  sql`select current_setting('server_version_num')::int as version`,
)

it('two questions at a time are both answered', async () => {
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  onTestFinished(() => client.end())
  const echo = new Echo('node', 'echoes')
  client.on('notification', ({ payload = '' }) => echo.hear(payload))
  await client.query('listen echoes')
  expect(await Promise.all([echo.of(client), echo.of(client)])).toEqual([
    expect.any(Number),
    expect.any(Number),
  ])
})

// Older servers have a queue of 8 GB, whatever their settings are.
it.runIf(version >= 170_000)(
  'a queue of signals that was full is usable again once nobody holds it',
  async () => {
    const cluster = await stoppableCluster({ max_notify_queue_pages: '64' })
    onTestFinished(cluster.remove)
    const [client, holder] = [new pg.Client(cluster.url), new pg.Client(cluster.url)]
    await Promise.all([client.connect(), holder.connect()])
    onTestFinished(() => client.end())
    const echo = new Echo('node', 'echoes')
    client.on('notification', ({ payload = '' }) => echo.hear(payload))
    await client.query('listen echoes')
    await holder.query('listen echoes')
    await holder.query('begin')
    await holder.query('select')
    const fill = async () => {
      for (const size of [7900, 20])
        for (let nth = 0; nth < 1000; nth++)
          await client.query(`select pg_notify('others', repeat('x', ${size}) || ${nth})`)
    }
    await expect(fill()).rejects.toThrow('too many notifications')
    await holder.end()
    expect(await echo.of(client)).toEqual(expect.any(Number))
  },
)

import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { toUrl } from '../../testing/cluster.ts'
import { testService } from '../../testing/index.ts'

async function served() {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const service = await testService({ database_url: toUrl(connection), database_wait_ms: 0 })
  onTestFinished(() => service.close())
  const { client } = await service.account()
  await client.cell_create({ data: {} })
  return {
    client,
    create: () => client.try.cell_create({ data: {} }),
    ready: async () => await (await fetch(`${service.url}/ready`)).json(),
    operator: await open(),
  }
}

const unavailable = { ok: false, error: { data: { reason: 'service_unavailable' } } }

test('calls answer 503 while an empty database is in the place of the served one, and go on when that is back', async () => {
  const { client, create, ready, operator } = await served()
  const others = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`
  await operator.query('alter schema cellkeep rename to away; create schema cellkeep')
  await operator.query(others)
  await expect.poll(ready, { timeout: 30_000 }).toEqual({ error: 'db_other_database' })
  expect(await create()).toMatchObject(unavailable)
  await operator.query('drop schema cellkeep; alter schema away rename to cellkeep')
  await expect.poll(ready, { timeout: 30_000 }).toEqual({ ready: true })
  await client.cell_create({ data: {} })
})

test('a node that keeps its connections refuses the database that is restored in the place of the served one', async () => {
  const { client, create, ready, operator } = await served()
  await operator.query('alter schema cellkeep rename to away')
  await expect.poll(ready, { timeout: 30_000 }).toEqual({ error: 'db_other_database' })
  expect(await create()).toMatchObject(unavailable)
  await operator.query('alter schema away rename to cellkeep')
  await expect.poll(ready, { timeout: 30_000 }).toEqual({ ready: true })
  await client.cell_create({ data: {} })

  // As a restore leaves it: the same tables and, as far as the backup goes, the same rows.
  await operator.query('update cluster set id = gen_random_uuid()')
  await expect.poll(ready, { timeout: 30_000 }).toEqual({ error: 'db_other_database' })
  expect(await create()).toMatchObject(unavailable)
})

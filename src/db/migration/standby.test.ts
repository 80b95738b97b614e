import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { withSteps, writeSteps } from '../../../test/helpers/planted-steps.ts'
import { copyDirectory, keptDatabase } from '../../../test/kept-database.ts'
import { inMemory } from '../../../test/memory.ts'
import { findBinaries } from '../../embedded/binaries.ts'
import { disconnect, startPostgres, stopPostgres } from '../../embedded/postgres-process.ts'
import { databaseUser } from '../../embedded/user.ts'
import { startCluster } from '../../testing/cluster.ts'
import { migrate } from './migrate.ts'

const settings = { wal_level: 'replica', max_wal_senders: '4', wal_receiver_status_interval: '1s' }
const [primary, standby] = await Promise.all([makeServer(), makeServer()])
afterAll(async () => {
  await Promise.all([primary.client.end(), standby.client.end()])
  await Promise.all([primary.cluster.stop(), standby.cluster.stop()])
})
await Promise.all([stopPostgres(join(primary.dir, 'db')), stopPostgres(join(standby.dir, 'db'))])
await rm(join(standby.dir, 'db'), { recursive: true })
await copyDirectory(join(primary.dir, 'db'), join(standby.dir, 'db'))
await writeFile(join(standby.dir, 'db', 'standby.signal'), '')
await primary.start()
await standby.start({ primary_conninfo: `host=${primary.dir} user=cellkeep dbname=postgres` })
await Promise.all([primary.client.connect(), standby.client.connect()])

async function makeServer() {
  const cluster = await startCluster({ within: inMemory(), settings, from: keptDatabase() })
  const dir = cluster.connection.host as string
  const user = await databaseUser('')
  const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined
  const binaries = await findBinaries({ postgresBin, libDir: join(dir, 'lib'), user, onNotice: console.warn })
  const files = { db: join(dir, 'db'), socketDir: dir, logFile: join(dir, 'log') }
  const start = async (more: Record<string, string> = {}): Promise<void> => {
    const all = { ...settings, fsync: 'off', max_connections: '300', ...more }
    await disconnect(await startPostgres({ ...files, binaries, user, settings: all }))
  }
  return { cluster, dir, start, client: new pg.Client(cluster.connection) }
}

test('a backfill waits while a replica is behind; a standby takes no migration', async () => {
  const directory = withSteps({
    '9000_made': 'create table made (id integer); insert into made select generate_series(1, 400)',
  })
  const { connection } = primary.cluster
  await migrate(connection, { directory })
  writeSteps(directory, {
    '9001_fill': `-- cellkeep: kind=backfill needs=0.1.0
with batch as (select id from made where id > coalesce(($1::jsonb ->> 'id')::integer, 0) order by id limit least($2, 5)),
  changed as (update made set id = -made.id from batch where made.id = batch.id)
select case when count(*) > 0 then jsonb_build_object('id', max(id)) end as cursor, count(*)::integer as rows
  from batch, pg_sleep(0.03)`,
  })
  const lag = `select coalesce(extract(epoch from replay_lag), 0)::float8 as lag from pg_stat_replication`
  await expect.poll(async () => (await primary.client.query(lag)).rowCount).toBe(1)
  const there = async () => (await standby.client.query(`select to_regclass('made') as made`)).rows[0].made
  await expect.poll(there).toBe('made')
  await expect(migrate(standby.cluster.connection, { directory, mode: 'run' })).rejects.toMatchObject({
    reason: 'db_read_only',
    exitCode: 3,
    message: expect.stringContaining('standby'),
  })

  await standby.client.query('select pg_wal_replay_pause()')
  const seen: number[] = []
  const run = migrate(connection, {
    directory,
    mode: 'run',
    patience: { lagS: 1 },
    around: (_step, work) => work((done) => void seen.push(done)),
  })
  await expect.poll(async () => (await primary.client.query(lag)).rows[0].lag).toBeGreaterThan(2.5)
  const held = seen.length
  await expect.poll(async () => (await primary.client.query(lag)).rows[0].lag).toBeGreaterThan(4)
  expect(seen).toHaveLength(held)
  await standby.client.query('select pg_wal_replay_resume()')
  expect((await run).applied).toEqual(['9001_fill'])
  expect(seen.length).toBeGreaterThan(held)
})

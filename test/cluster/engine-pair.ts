import { execFile } from 'node:child_process'
import { appendFile, chown, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { roleSettings } from '../../src/db/servers/admission.ts'
import { socketName, superuser } from '../../src/embedded/postgres-process.ts'
import { startBouncer } from '../helpers/bouncer.ts'
import { stoppableCluster } from '../helpers/stoppable-cluster.ts'
import { on } from '../helpers/twins.ts'
import type { Options } from './options.ts'
import { type Wire, wireTo } from './wire.ts'

type Member = Awaited<ReturnType<typeof stoppableCluster>> & { name: string; wire: Wire }
export type PairEngine = Awaited<ReturnType<typeof enginePair>>

const run = promisify(execFile)

/**
 * A primary, its synchronous standby, and further standbys for reads. It does the work of a cluster manager: it stops
 * requiring the standby while that is away, and promotes it only when it has everything that was acknowledged.
 */
export async function enginePair(options: Pick<Options, 'replicas' | 'pooler'>) {
  const member = async (name: string): Promise<Member> => {
    const cluster = await stoppableCluster({ wal_level: 'replica', max_wal_senders: '10' })
    return Object.assign(cluster, { name, wire: await wireTo(join(cluster.dir, socketName)) })
  }
  const pair = await Promise.all([member('one'), member('two')])
  let [primary, standby] = pair as [Member, Member]
  const replicas = await Promise.all(
    Array.from({ length: options.replicas }, (_, index) => member(`replica${index + 1}`)),
  )
  const members = [...pair, ...replicas]
  let crashes = 0
  const promotions: number[] = []

  const configure = (of: Member, ...settings: string[]): Promise<unknown> =>
    on(of.url, ...settings.map((text) => `alter system set ${text}`), 'select pg_reload_conf()')
  const requireStandby = (of: Member, is: boolean): Promise<unknown> =>
    configure(of, `synchronous_standby_names = '${is ? 'standby' : ''}'`)

  /** Replaces the data of this member by a copy of the running primary, which it then follows. */
  const copyTo = async (one: Member): Promise<void> => {
    await one.stop()
    await rm(one.db, { recursive: true, force: true })
    const client = new pg.Client(primary.url)
    await client.connect()
    await client.query(`select pg_backup_start('rejoin', true)`)
    // `cp` fails on files that vanish while it runs; the copy does not need them.
    await run('cp', ['-a', primary.db, one.db]).catch(() => {})
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
    await client.end()
    const label = join(one.db, 'backup_label')
    await writeFile(label, rows[0].labelfile)
    const { uid, gid } = await stat(one.db)
    await chown(label, uid, gid)
    await rm(join(one.db, 'postmaster.pid'), { force: true })
    await run('sh', ['-c', 'rm -rf "$1"/pg_wal/0* "$1"/pg_replslot/*', 'sh', one.db])
    await one.follow(primary, one === standby ? 'standby' : one.name)
    await one.start()
  }
  /** Until they are copied anew, the replicas follow the replaced primary, whose last writes may be lost. */
  const rejoin = async (): Promise<void> => {
    for (const one of [standby, ...replicas]) await copyTo(one)
  }

  /** Waits until the standby has everything, and makes commits wait for it from then on. */
  const settle = async (): Promise<void> => {
    const [{ lsn }] = (await on(primary.url, 'select pg_current_wal_lsn() as lsn')) as [{ lsn: string }]
    const reached = async (where: string): Promise<boolean> =>
      (
        await on(
          primary.url,
          `select from pg_stat_replication where application_name = 'standby' and ${where}`,
        )
      ).length > 0
    while (!(await reached(`state = 'streaming' and flush_lsn >= '${lsn}'`))) await delay(50)
    await requireStandby(primary, true)
    while (!(await reached(`sync_state = 'sync'`))) await delay(50)
  }

  const promote = async (): Promise<void> => {
    await requireStandby(standby, false)
    // Polled, because replay may cancel a statement that waits on a standby.
    await on(standby.url, 'select pg_promote(false)')
    const isStandby = async () => (await on(standby.url, 'select pg_is_in_recovery() as is'))[0].is
    while (await isStandby()) await delay(10)
    ;[primary, standby] = [standby, primary]
    crashes += 1
    promotions.push(performance.now())
  }

  await primary.stop()
  await standby.stop()
  await appendFile(
    join(primary.db, 'postgresql.auto.conf'),
    [
      ...[`wal_keep_size = '1GB'`, `wal_sender_timeout = '5s'`, `wal_receiver_timeout = '5s'`],
      `wal_retrieve_retry_interval = '200ms'\n`,
    ].join('\n'),
  )
  await primary.start()
  await rejoin()
  await settle()

  const urlOf = (hosts: string[]): string => `postgres://${superuser}@${hosts.join(',')}/postgres`
  const hosts = pair.map(({ wire }) => wire.host)
  const settings: Record<string, string> = { CELLKEEP_DATABASE_URL: urlOf(hosts) }
  if (replicas.length > 0)
    settings.CELLKEEP_DATABASE_REPLICA_URLS = replicas.map(({ wire }) => urlOf([wire.host])).join(' ')
  if (options.pooler) {
    // The pooler drops the settings that nodes send, and server sessions keep the ones they began with.
    const limits = { statementMs: 10_000, idleMs: 30_000, schema: 'cellkeep' }
    await on(primary.url, ...roleSettings(superuser, limits).split('\n'))
  }
  const poolers = options.pooler
    ? await Promise.all(
        pair.map(({ wire }) => startBouncer({ ...wire.address, user: superuser, database: 'postgres' }, 20)),
      )
    : []
  if (options.pooler) {
    settings.CELLKEEP_DATABASE_DIRECT_URL = urlOf(hosts)
    settings.CELLKEEP_DATABASE_URL = urlOf(poolers.map(({ host }) => host))
    settings.CELLKEEP_DATABASE_STATEMENTS = 'unnamed'
  }

  return {
    get primary() {
      return primary
    },
    get standby() {
      return standby
    },
    get crashes() {
      return crashes
    },
    promotions,
    wires: members.map(({ wire }) => wire),
    replicas,
    poolers,
    settings: [settings],
    requireStandby,
    rejoin,
    settle,
    promote,
    /** Starts the same primary again. */
    restart: async (): Promise<void> => {
      crashes += 1
      await primary.start()
    },
    remove: async (): Promise<void> => {
      for (const pooler of poolers) await pooler.remove()
      for (const { wire, thaw, remove } of members) {
        await thaw().catch(() => {})
        await wire.close()
        await remove()
      }
    },
  }
}

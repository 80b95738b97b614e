import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { stopPostgres, superuser } from '../../src/embedded/postgres-process.ts'
import { databaseUser, runAs } from '../../src/embedded/user.ts'
import { signalServer } from '../embedded.ts'
import { freePort } from '../helpers/free-port.ts'
import { on } from '../helpers/twins.ts'
import { inMemory } from '../memory.ts'
import { type Options, postgresBin } from './options.ts'
import { wireTo } from './wire.ts'

export type PatroniEngine = Awaited<ReturnType<typeof enginePatroni>>
type Member = Awaited<ReturnType<typeof memberOf>>
type Place = { root: string; etcd: string }
/** What a member reports about itself. */
type State = { role: string; state: string; timeline: number }

const scope = 'cellkeep'
/** Patroni notices a lost leader after 20 s; the rest is a margin for busy machines. */
const patience = 120_000
const haproxyFile = new URL('../../packaging/haproxy.cfg', import.meta.url)

/** Three members managed by Patroni with one etcd, and HAProxy, which the last of three nodes connects through. */
export async function enginePatroni({ slack }: Options) {
  const patienceMs = patience * slack
  const user = await databaseUser('')
  const root = await mkdtemp(join(inMemory() ?? tmpdir(), 'ck-patroni-'))
  if (user) await chown(root, user.uid, user.gid)
  const started: ChildProcess[] = []
  const run = (program: string, args: string[]): ChildProcess => {
    const child = spawn(program, args, { stdio: 'ignore', ...runAs(user) })
    started.push(child)
    return child
  }

  const [client, peer] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const etcd = run('etcd', [
    ...[
      '--data-dir',
      join(root, 'etcd'),
      '--log-level',
      'error',
      '--initial-cluster',
      `default=http://${peer}`,
    ],
    ...['--listen-client-urls', `http://${client}`, '--advertise-client-urls', `http://${client}`],
    ...['--listen-peer-urls', `http://${peer}`, '--initial-advertise-peer-urls', `http://${peer}`],
  ])
  const place = { root, etcd: client }
  const members: Member[] = []
  let leader: Member
  let timeline = 0
  let crashes = 0
  const promotions: number[] = []

  /** Waits until a member other than these takes writes. */
  const replaced = async (...not: Member[]): Promise<void> => {
    const limit = performance.now() + patienceMs
    const others = members.filter((one) => !not.includes(one))
    for (; ; await delay(50)) {
      if (performance.now() > limit) throw new Error(`No member of ${root} takes writes.`)
      const states = await Promise.all(others.map((one) => one.state()))
      const at = states.findIndex((state) => state?.role === 'master' && state.timeline >= timeline)
      const [found, state] = [others[at], states[at]]
      if (!found || !state) continue
      if (timeline > 0 && state.timeline > timeline) {
        crashes += state.timeline - timeline
        promotions.push(performance.now())
      }
      ;[leader, timeline] = [found, state.timeline]
      return
    }
  }
  const settle = async (): Promise<void> => {
    const limit = performance.now() + patienceMs
    for (; ; await delay(100)) {
      await replaced()
      const rows = await on(
        leader.url,
        `select application_name as name, state, sync_state, flush_lsn >= sent_lsn as is_up_to_date
         from pg_stat_replication`,
      ).catch(() => [])
      const following = rows.filter(({ state, is_up_to_date }) => state === 'streaming' && is_up_to_date)
      const isSafe = following.some(({ sync_state }) => sync_state === 'sync')
      if (following.length === members.length - 1 && isSafe) return
      if (performance.now() <= limit) continue
      const states = await Promise.all(members.map(async ({ name, state }) => ({ name, ...(await state()) })))
      throw new Error(
        `The members do not follow ${leader.name}, which replicates to ${JSON.stringify(rows)}: ${JSON.stringify(states.map(({ name, role, state, timeline }) => [name, role, state, timeline]))}`,
      )
    }
  }
  const remove = async (): Promise<void> => {
    for (const { wire, thaw, stop } of members) {
      await thaw()
      await wire.close()
      await stop()
    }
    for (const child of started) await ended(child)
    await rm(root, { recursive: true, force: true })
  }

  try {
    for (const name of ['pg1', 'pg2', 'pg3']) {
      const dir = join(root, name)
      await mkdir(dir)
      if (user) await chown(dir, user.uid, user.gid)
      members.push(await memberOf(place, name, run))
    }
    // The first one initialises the database, which the others copy.
    for (const one of members) {
      await one.start()
      await replaced()
    }
    await settle()
    const proxy = await freePort()
    const config = join(root, 'haproxy.cfg')
    await writeFile(config, await proxyTo(members, proxy))
    run('haproxy', ['-db', '-f', config])

    const urlOf = (hosts: string[]): string => `postgres://${superuser}@${hosts.join(',')}/postgres`
    const hosts = members.map(({ wire }) => wire.host)
    const common = { CELLKEEP_DATABASE_REPLICA_URLS: hosts.map((host) => urlOf([host])).join(' ') }
    const direct = { ...common, CELLKEEP_DATABASE_URL: urlOf(hosts) }
    return {
      get primary() {
        return leader
      },
      get replicas() {
        return members.filter((one) => one !== leader)
      },
      get crashes() {
        return crashes
      },
      members,
      promotions,
      wires: members.map(({ wire }) => wire),
      poolers: [],
      settings: [direct, direct, { ...common, CELLKEEP_DATABASE_URL: urlOf([`127.0.0.1:${proxy}`]) }],
      etcd,
      /** Runs an operator's command. */
      ctl: (command: string, ...args: string[]) =>
        promisify(execFile)('patronictl', ['-c', leader.config, command, scope, ...args]),
      /** Counts a crash of a leader that continues as leader. */
      crashed: (): void => {
        crashes += 1
      },
      replaced,
      settle,
      remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

async function memberOf(
  { root, etcd }: Place,
  name: string,
  run: (program: string, args: string[]) => ChildProcess,
) {
  const dir = join(root, name)
  const db = join(dir, 'db')
  const [port, rest] = [await freePort(), await freePort()]
  const [address, api] = [`127.0.0.1:${port}`, `127.0.0.1:${rest}`]
  const config = join(root, `${name}.yml`)
  const settings = {
    ...{ scope, name, etcd3: { host: etcd }, restapi: { listen: api, connect_address: api } },
    log: { dir },
    bootstrap: {
      dcs: {
        ...{ ttl: 20, loop_wait: 3, retry_timeout: 5, synchronous_mode: true, failsafe_mode: true },
        postgresql: {
          use_pg_rewind: true,
          parameters: { max_connections: 300, wal_keep_size: '1GB', wal_sender_timeout: '5s' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      ...{ listen: address, connect_address: address, data_dir: db, bin_dir: postgresBin },
      pgpass: join(dir, 'pgpass'),
      authentication: Object.fromEntries(
        ['superuser', 'replication', 'rewind'].map((role) => [role, { username: superuser }]),
      ),
      pg_hba: ['local all all trust', 'host all,replication all 127.0.0.1/32 trust'],
      parameters: { unix_socket_directories: dir, fsync: 'off' },
    },
  }
  // JSON is also YAML.
  await writeFile(config, JSON.stringify(settings))
  let manager: ChildProcess | undefined
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    if (manager && isRunning(manager)) manager.kill(name)
    await signalServer(dir, name)
  }
  return {
    name,
    config,
    rest,
    url: `postgres://${superuser}@${address}/postgres`,
    wire: await wireTo(join(dir, `.s.PGSQL.${port}`)),
    state: (): Promise<State | undefined> =>
      fetch(`http://${api}/patroni`, { signal: AbortSignal.timeout(1_000) })
        .then((answer) => answer.json() as Promise<State>)
        .catch(() => undefined),
    start: async (): Promise<void> => {
      manager = run('patroni', [config])
      await once(manager, 'spawn')
    },
    /** Only the manager is killed; the server goes on without it. */
    killManager: (): Promise<void> => ended(manager),
    killServer: (): Promise<void> => signalServer(dir, 'SIGKILL'),
    stop: async (): Promise<void> => {
      await ended(manager)
      await stopPostgres(db)
    },
    /** The manager goes first, because it would start the server again. */
    kill: async (): Promise<void> => {
      await ended(manager)
      await signal('SIGKILL')
    },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode === null && signalCode === null

async function ended(child: ChildProcess | undefined): Promise<void> {
  if (!child || !isRunning(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** The database section of the shipped file, with these members as servers. */
async function proxyTo(members: Member[], port: number): Promise<string> {
  const [shipped = ''] = (await readFile(haproxyFile, 'utf8')).split(/^frontend /m)
  const servers = members.map(
    ({ name, wire, rest }) => `  server ${name} ${wire.host} check addr 127.0.0.1 port ${rest}\n`,
  )
  const text = shipped
    .replace(/^ {2}server .*\n/gm, '')
    .replace('127.0.0.1:5000', `127.0.0.1:${port}`)
    .replace('maxconn 20000', 'maxconn 400')
    .replace(/^ {2}default-server .*\n/m, (line) => `${line}${servers.join('')}`)
  return text
}

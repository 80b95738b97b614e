import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { keptKeys } from '../src/auth/kept-keys.ts'
import { createPasswords, type PasswordsOptions } from '../src/auth/password.ts'
import { connectionTo } from '../src/embedded/postgres-process.ts'
import { cpuOf } from './cpu.ts'
import type { LoadResult } from './load.ts'
import { type Machine, machine } from './machine.ts'
import { median } from './numbers.ts'
import { loader, product, type Started, temporary } from './processes.ts'
import type { Figures } from './report.ts'
import type { Workload } from './workloads.ts'
import { generateWorld, idOf, indexOf, openSessions } from './world.ts'

export const password = 'a bench password'
const bystanderCount = 50

/** A server to measure; `databasePid` is a process above its PostgreSQL, by default the server itself. */
export type Target = { port: number; pid: number; databasePid?: number }
/** CPU time per request in microseconds, of the server and of its database; memory of the server afterwards, in MB. */
export type Slice = Omit<LoadResult, 'samples'> & { cpu: number; databaseCpu: number; memory: number }
export type TakeSlice = (workload: Workload, target: Target, seconds?: number) => Promise<Slice>

/** In seconds; a slice without a single answer is repeated, four times as long, up to this. */
const longest = 20

/** Takes slices: a workload for a while, with what it cost. */
export function slicer(started: Started, seconds: number): TakeSlice {
  const load = loader(started)
  const slice: TakeSlice = async (workload, target, length = seconds) => {
    const { drive, requests, connections } = workload
    const { port, pid, databasePid = pid } = target
    await workload.first?.(port)
    const before = [cpuOf(pid).own, cpuOf(databasePid).below] as const
    const result = await (drive
      ? drive(port, length)
      : load({ port, requests, connections, seconds: length }))
    if (result.count === 0) {
      if (length > longest) throw new Error(`${workload.name}: no answer in ${length} s`)
      return await slice(workload, target, 4 * length)
    }
    const perRequest = (after: number, from: number) => ((after - from) / result.count) * 1e6
    return {
      ...result,
      cpu: perRequest(cpuOf(pid).own, before[0]),
      databaseCpu: perRequest(cpuOf(databasePid).below, before[1]),
      memory: memoryOf(pid),
    }
  }
  return slice
}

/** Resident memory in MB: all, or the pages of program files, which processes share and the system may drop. */
export const memoryOf = (pid: number, which: 'VmRSS' | 'RssFile' = 'VmRSS'): number =>
  Number(new RegExp(`${which}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

export function summary({ name, connections, bar }: Workload, slices: readonly Slice[]): Figures {
  const middle = (of: keyof Slice) => median(slices.map((one) => one[of]))
  const [rate, p50, p99, memory] = [middle('rate'), middle('p50'), middle('p99'), middle('memory')]
  const [cpu, databaseCpu] = [middle('cpu'), middle('databaseCpu')]
  return { name, connections, ...(bar && { bar }), rate, p50, p99, cpu, databaseCpu, memory }
}

/** What requests need to know of the world: its callers and cells. */
export type World = {
  cookies: string[]
  /** Of accounts that do not log in, so the cap does not end their sessions. */
  bystanders: string[]
  admin: string
  /** Ids of public cells. */
  visible: string[]
  /** A cell for each cookie whose account owns one. */
  own: { cookie: string; account: number; actor_id: string; id: string }[]
}

export type Prepared = {
  server: Target
  world: World
  client: pg.Client
  facts: Machine
  socket: string
  /** Starts another node on the same database, with settings of its own. */
  beside(own: Record<string, string>): Promise<Target & { logFile: string }>
}

/** Starts the product as users start it, with a world of cells and sessions. */
export async function prepare(
  started: Started,
  options: {
    cells: number
    sessions: number
    hashing: PasswordsOptions
    node?: string[]
  },
): Promise<Prepared> {
  const { cells, hashing } = options
  const dir = await temporary(started)
  const dataDir = join(dir, 'data')
  const limits =
    'CELL_CREATE CELL_READ LOGIN_IP LOGIN_ACCOUNT ADMIN_READ ROLE_WRITE ROLE_REVOKE ACCOUNT'.split(' ')
  const off = limits.map((name) => [`CELLKEEP_LIMIT_${name}`, 'off'] as const)
  const hashes = { CELLKEEP_HASH_CONCURRENCY: String(hashing.concurrency) }
  const env = { ...Object.fromEntries(off), ...hashes }
  const server = await product(started, dataDir, env, options.node)
  const socket = join(dataDir, 'socket')
  const client = new pg.Client(connectionTo(socket, 'cellkeep'))
  await client.connect()
  started.add(() => client.end())
  await generateWorld(client, { cells, passwordHash: await createPasswords(hashing).hash(password) })
  const keys = await keptKeys(dataDir, 'cookie_keys')
  const indexes = Array.from({ length: options.sessions }, (_, index) => index)
  const cookies = await openSessions(client, indexes, keys)
  const others = Array.from({ length: bystanderCount }, (_, index) => indexes.length + index)
  const bystanders = await openSessions(client, others, keys)
  // As autovacuum does after a minute; until then each login scans the table of sessions.
  await client.query('analyze auth_session')
  const visible = await client.query<{ id: string }>(
    `select id from cell where visibility = 'public' and deleted_at is null order by id limit 1000`,
  )
  const own = await client.query<{ actor_id: string; id: string }>(
    `select distinct on (created_by) created_by as actor_id, id from cell
     where deleted_at is null and visibility = 'private' and path is null and created_by is not null
     order by created_by, id`,
  )
  const accounts = new Map(indexes.map((index) => [idOf('actor', index), index]))
  const world: World = {
    cookies,
    bystanders,
    admin: cookies[indexOf('admin')] as string,
    visible: visible.rows.map(({ id }) => id),
    own: own.rows.flatMap((row) => {
      const account = accounts.get(row.actor_id)
      return account === undefined ? [] : [{ ...row, account, cookie: cookies[account] as string }]
    }),
  }
  const beside = async (own: Record<string, string>) => {
    const url = `postgres://${client.user}@/cellkeep?host=${encodeURIComponent(socket)}`
    const shared = { CELLKEEP_DATABASE_URL: url, CELLKEEP_COOKIE_KEYS: keys.join(',') }
    const node = await product(started, join(await temporary(started), 'data'), { ...env, ...shared, ...own })
    return { ...node, databasePid: server.pid }
  }
  return { server, world, client, facts: await machine(client), socket, beside }
}

import dns from 'node:dns/promises'
import { isIP, Socket } from 'node:net'
import pg from 'pg'
import { parseDatabaseUrl } from '../../config/database-url.ts'
import type { Connection } from './connection.ts'
import { isUnreachable } from './failure.ts'
import { Unfit } from './unfit.ts'

/** Time for each server while there are others to try. */
const attemptMs = 2_000
/** Time for all of them. */
const allMs = 5_000

export type Dial = {
  connection: Connection
  /** What the driver needs for one of the servers. */
  config(one: Connection): pg.ClientConfig
  /** Rejects if this server is not to be used. */
  judge(client: pg.Client): Promise<void>
  /** Called for each server that was tried; without an error it is used. */
  tried?(error?: unknown): void
  withinMs?: number
  /** True: the session may be another one for each transaction, so none of its settings is changed. */
  isPooled?: boolean
}

type Target = { connection: Connection; address: string | undefined; key: string }

/** The server last used from each list: it most likely still is the primary. */
const last = new Map<string | undefined, string>()
/** Poolers that refuse start-up options; the settings are then made by statements. */
const optionless = new Set<string | undefined>()

/**
 * A connection to the first server that the judge accepts. Names are resolved anew each time, and all addresses of a
 * name are tried. Rejects with the most telling of the failures.
 */
export async function dial(options: Dial): Promise<pg.Client> {
  const { connection, config, judge, tried, withinMs = allMs } = options
  const { isPooled = connection.direct !== undefined } = options
  const { connectionString: list } = connection
  const url = list === undefined ? undefined : parseDatabaseUrl(list)
  if (typeof url === 'string') throw new Error(`The database URL ${url}`)
  const until = performance.now() + Math.max(withinMs, attemptMs)
  const failures: unknown[] = []
  const note = (error: unknown): void => {
    failures.push(error)
    tried?.(error)
  }
  const targets = await targetsOf(connection, url, note)
  const each = url?.attemptMs ?? (targets.length === 1 ? allMs : attemptMs)
  for (const { connection: one, address, key } of targets) {
    const limit = Math.min(each, until - performance.now())
    if (limit <= 0) break
    try {
      const client = await attempt(config(one), { address, limit, judge, list, isPooled })
      last.set(list, key)
      tried?.()
      return client
    } catch (error) {
      note(error)
    }
  }
  if (failures.length === 0) throw new Error('the names of the servers took too long to resolve')
  throw failures.reduce((most, error) => (weight(error) > weight(most) ? error : most))
}

/** What a server said tells more than that another one is down, which a list of servers is for. */
const weight = (error: unknown): number =>
  error instanceof Unfit ? error.weight : isUnreachable(error) ? 0 : 0.5

type Url = Exclude<ReturnType<typeof parseDatabaseUrl>, string>

async function targetsOf(
  connection: Connection,
  url: Url | undefined,
  note: (error: unknown) => void,
): Promise<Target[]> {
  const servers = url?.servers ?? [
    { host: connection.host ?? 'localhost', port: connection.port, url: undefined },
  ]
  const targets = await Promise.all(
    servers.map(async ({ host, port, url: connectionString }) => {
      const one = connectionString ? { ...connection, connectionString } : connection
      const isName = !host.startsWith('/') && !isIP(host)
      const addresses = isName ? await resolved(host, note) : [{ address: undefined }]
      return addresses.map(({ address }) => ({ connection: one, address, key: `${host} ${port} ${address}` }))
    }),
  )
  const before = last.get(connection.connectionString)
  // One number for each: a comparison that is random itself would favour some of them.
  const placeOf = ({ key }: Target, at: number) => (key === before ? -1 : url?.isRandom ? Math.random() : at)
  return targets
    .flat()
    .map((target, at) => ({ target, place: placeOf(target, at) }))
    .sort((a, b) => a.place - b.place)
    .map(({ target }) => target)
}

const resolved = (host: string, note: (error: unknown) => void): Promise<{ address: string }[]> =>
  dns.lookup(host, { all: true }).catch((error) => {
    note(error)
    return []
  })

type Attempt = Pick<Dial, 'judge'> & {
  address: string | undefined
  limit: number
  list: string | undefined
  isPooled: boolean
}

/** Not a start-up option, because servers before 17 refuse a connection that names this setting. */
const withoutTransactionLimit = `select set_config('transaction_timeout', '0', false)
  where current_setting('transaction_timeout', true) <> '0'`

async function attempt(config: pg.ClientConfig, how: Attempt): Promise<pg.Client> {
  const { address, limit, judge, list, isPooled } = how
  const { options, ...rest } = config
  const hasOptions = options !== undefined && !optionless.has(list)
  const client = new pg.Client({
    ...(hasOptions ? config : rest),
    keepAlive: true,
    ...(address && { stream: () => socketTo(address) }),
  })
  // Without a listener Node exits when the connection is lost; the running statement reports it.
  client.on('error', () => {})
  const timer = setTimeout(() => cut(client, new Error('timeout expired')), limit)
  try {
    await client.connect()
    if (!isPooled) await client.query(withoutTransactionLimit)
    await judge(client)
    return client
  } catch (error) {
    cut(client)
    if (!hasOptions || (error as pg.DatabaseError).code !== '08P01') throw error
    optionless.add(list)
    return await attempt(config, how)
  } finally {
    clearTimeout(timer)
  }
}

/** A socket that goes to this address, while the driver checks certificates for the name. */
function socketTo(address: string): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket) as (port: number, host: string) => Socket
  socket.connect = ((port: number) => connect(port, address)) as Socket['connect']
  return socket
}

/** The connection below a client, which the types of pg leave out. */
export const streamOf = (client: Pick<pg.Client, 'query'>): Socket | undefined =>
  (client as { connection?: { stream?: Socket } }).connection?.stream

/** How long to wait for a server that does not close a connection. */
const farewellMs = 2_000

/** Ends a connection once what was sent on it is answered. If it is not busy and yet does not close, it is cut. */
export async function farewell(client: pg.Client, isBusy = (): boolean => false): Promise<void> {
  const timer = setTimeout(() => isBusy() || cut(client), farewellMs)
  await client.end().catch(() => {})
  clearTimeout(timer)
}

/** Closes a connection whatever it is doing: statements under way fail at once. */
export const cut = (client: pg.Client, error?: Error): void => void streamOf(client)?.destroy(error)

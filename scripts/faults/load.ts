import { setTimeout as delay } from 'node:timers/promises'
import { type Outcome, TransportError } from '../../src/client/client.ts'
import { assertKept } from '../../test/helpers/crash.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import {
  bootstrap,
  type Environment,
  type ServerProcess,
  startServer,
} from '../../test/helpers/server-process.ts'

/** One answer, or the lack of one: when it came, since the fault, and how long it took. */
type Seen = { kind: 'write' | 'read'; what: string; at: number; ms: number }

export type Load = {
  server: ServerProcess
  /** Starts it again at the same place, as a supervisor would. */
  restart(): Promise<void>
  /** Sets the moment from which times are counted to now. */
  strike(): void
  /** Resolves after this many more acknowledged writes. */
  writes(count: number): Promise<void>
  /** Resolves when a call was not answered with success. */
  refusal(): Promise<void>
  /** Ends the callers, checks that nothing acknowledged is lost, and says what they saw. */
  end(): Promise<Report>
}

export type Report = { seen: string; howLong: string; acknowledged: number }

const writers = 4
const readers = 2

/** What no limiter of calls and no restart changes. */
const settings = {
  CELLKEEP_LIMIT_CELL_CREATE: 'off',
  CELLKEEP_LIMIT_CELL_READ: 'off',
  CELLKEEP_LIMIT_LOGIN_IP: 'off',
}

/** A server under reads and writes that go on whatever it answers. */
export async function startLoad(cwd: string, env: Environment = {}, shell = ''): Promise<Load> {
  const all = { ...settings, CELLKEEP_PORT: String(await freePort()), ...env }
  let server = await startServer(cwd, all, shell)
  const { client } = server
  await bootstrap(server)
  const first = await client.cell_create({ data: {} })
  const acknowledged = [first.cell.id]
  const seen: Seen[] = []
  const checks = new Set<() => void>()
  let struck = Number.POSITIVE_INFINITY
  let isOver = false

  const caller = async (kind: Seen['kind'], call: () => Promise<string>): Promise<void> => {
    while (!isOver) {
      const before = performance.now()
      const what = await call()
      const at = performance.now()
      if (before >= struck || at >= struck) seen.push({ kind, what, at: at - struck, ms: at - before })
      for (const check of checks) check()
      // Pauses, because no caller asks a thousand times a second whether a closed port is open again.
      if (what !== 'ok') await delay(20)
    }
  }
  const write = async (): Promise<string> => {
    const outcome = await client.try.cell_create({ data: { text: 'x'.repeat(500) } })
    if (outcome.ok) acknowledged.push(outcome.result.cell.id)
    return saidBy(outcome)
  }
  const read = async (): Promise<string> => {
    return saidBy(await client.try.cell_get({ id: first.cell.id }))
  }
  const callers = Promise.all([
    ...Array.from({ length: writers }, () => caller('write', write)),
    ...Array.from({ length: readers }, () => caller('read', read)),
  ])
  const until = (is: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = () => {
        if (!is()) return
        checks.delete(check)
        resolve()
      }
      checks.add(check)
      check()
    })

  return {
    get server() {
      return server
    },
    restart: async () => {
      server = await startServer(cwd, all, shell)
    },
    strike: () => {
      struck = performance.now()
    },
    writes: (count) => {
      const wanted = acknowledged.length + count
      return until(() => acknowledged.length >= wanted)
    },
    refusal: () => until(() => seen.some(({ what }) => what !== 'ok')),
    end: async () => {
      isOver = true
      await callers
      await assertKept({ client }, acknowledged)
      return { ...summary(seen), acknowledged: acknowledged.length }
    },
  }
}

/** Both kinds of callers, with what they saw and for how long. */
function summary(seen: Seen[]): { seen: string; howLong: string } {
  const kinds = (['write', 'read'] as const).map((kind) => {
    const own = seen.filter((one) => one.kind === kind)
    const bad = own.filter(({ what }) => what !== 'ok')
    const slowest = Math.max(0, ...own.map(({ ms }) => ms))
    const counts = [...new Set(bad.map(({ what }) => what))].map(
      (what) => `${what} × ${bad.filter((one) => one.what === what).length}`,
    )
    const successes = own.filter(({ what }) => what === 'ok').map(({ at }) => at)
    const gap = Math.max(
      ...successes.sort((a, b) => a - b).map((at, index) => at - (successes[index - 1] ?? 0)),
    )
    return {
      seen: `${kind}s: ${counts.join(', ') || 'every one answered'}; slowest answer ${seconds(slowest)}`,
      howLong: bad.length > 0 ? `${kind}s ${seconds(gap)}` : `${kind}s not at all`,
    }
  })
  return {
    seen: kinds.map((one) => one.seen).join('<br>'),
    howLong: kinds.map((one) => one.howLong).join('<br>'),
  }
}

export const seconds = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`

function saidBy(outcome: Outcome<unknown, string>): string {
  if (outcome.ok) return 'ok'
  const { error } = outcome
  if (!(error instanceof TransportError)) return `${error.status} ${error.reason}`
  // `fetch` wraps the error of the system.
  const { code } = ((error.cause as Error | undefined)?.cause ?? {}) as { code?: string }
  return code === 'ECONNREFUSED' ? 'connection refused' : 'connection cut'
}

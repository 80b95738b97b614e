import { setTimeout as delay } from 'node:timers/promises'
import { on } from '../helpers/twins.ts'
import type { Node, Seen } from './fleet.ts'
import type { Episode, World } from './world.ts'

/** Checks that do not belong to one load. Each call judges what came since the previous call. */
export function createInvariants(world: World) {
  const { fleet, engine, options, violate } = world
  let judged = 0
  let known: Set<string> | undefined
  /** The number of lines of each node that have been checked. */
  const read = new Map<string, number>()
  const linesOf = ({ logged, process }: Node) => [...logged, ...process.log()]

  /** I8: no caller got an answer that it may not get. I9: nothing failed without a fault. */
  const answers = (): void => {
    const fresh = fleet.seen.slice(judged)
    judged = fleet.seen.length
    const wrong = fresh.filter(({ kind }) => kind === 'wrong')
    const stray = fresh.filter(
      ({ kind, began, ended }) => /away|cut/.test(kind) && world.isCalm(began, ended),
    )
    for (const [text, count] of kindsOf(wrong)) violate('I8', `${text} × ${count}`)
    for (const [text, count] of kindsOf(stray)) violate('I9', `without a fault: ${text} × ${count}`)
  }

  /** I15, unless there is a second fault, or the replaced primary is frozen: an attempt to connect to it takes 2 s. */
  const resumed = ({ faults, struck }: Episode): void => {
    if (faults.length > 1 || faults[0] === 'primary-blink') return
    const written = fleet.seen.filter(({ isWrite, kind }) => isWrite && kind === 'ok')
    for (const at of engine.promotions.filter((one) => one >= struck)) {
      const waited = Math.min(...written.map(({ ended }) => ended - at).filter((ms) => ms >= 0))
      if (waited > 2_000 * options.slack) violate('I15', `writes went on ${waited} ms after a promotion`)
    }
  }

  /**
   * I8: no call fails by retention, nor by a node that is stopped or drained, unless a second fault hides that from its
   * balancer.
   */
  const unnoticed = ({ faults, struck, healed }: Episode): void => {
    const unfelt = ['node-term', 'node-drain', 'node-clock', 'retention']
    if (faults.length > 1 || !unfelt.includes(faults[0] as string)) return
    const failed = fleet.seen.filter(
      ({ kind, began, ended }) => /away|cut/.test(kind) && ended >= struck && began <= healed,
    )
    for (const [text, count] of kindsOf(failed)) violate('I8', `${faults[0]} was noticed: ${text} × ${count}`)
  }

  /**
   * I3: while the database is away, audit rows of refusals may be lost, but never those of changes. I13: no error is
   * handled nowhere.
   */
  const logs = (): void => {
    for (const node of fleet.nodes)
      for (const line of linesOf(node).slice(read.get(node.name))) {
        if (/was not caught|was not handled/.test(String(line.msg)))
          violate('I13', `${node.name}: ${JSON.stringify(line)}`)
        const lost = (line.lost ?? []) as { outcome?: string }[]
        if (lost.some(({ outcome }) => outcome !== 'failure')) violate('I3', JSON.stringify(line))
      }
    for (const node of fleet.nodes) read.set(node.name, linesOf(node).length)
  }

  /** I13: every node becomes ready again by itself, in time. */
  const healed = async (): Promise<void> => {
    const limit = performance.now() + 30_000 * options.slack
    while (!(await fleet.isReady())) {
      if (performance.now() > limit) {
        violate('I13', 'a node does not become ready')
        return
      }
      await delay(50)
    }
  }

  /** I11: `doctor` finds nothing that it did not find at the beginning. */
  const doctor = async (): Promise<void> => {
    const { stdout, stderr } = await fleet.run('doctor', '--deep', '--json')
    const found = stdout.map((line) => JSON.parse(line) as { finding: string; what: string })
    if (stderr && found.length === 0) violate('I11', `doctor says ${stderr}`)
    for (const { finding, what } of found)
      if (known && !known.has(finding)) violate('I11', `doctor found ${finding}: ${what}`)
    // Autovacuum may not come by within minutes, so there may be bloat, and tables that it has not analyzed yet.
    const late = ['bloat', 'statistics_missing']
    known ??= new Set(['audit_rows_lost', ...late, ...found.map(({ finding }) => finding)])
  }

  /** I12, while the nodes run without load. */
  const leftovers = async (): Promise<void> => {
    const { url } = engine.primary
    const idle = await on(
      url,
      `select pid, query from pg_stat_activity
       where state like 'idle in transaction%' and state_change < now() - interval '5 s'`,
    )
    const invalid = await on(
      url,
      'select indexrelid::regclass::text as name from pg_index where not indisvalid',
    )
    const prepared = await on(url, 'select gid from pg_prepared_xacts')
    for (const one of [...idle, ...invalid, ...prepared])
      violate('I12', `left behind: ${JSON.stringify(one)}`)
  }

  /** I12, after the nodes have ended. */
  const quiet = async (): Promise<void> => {
    const sessions = await on(
      engine.primary.url,
      `select application_name, state, query from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name <> 'Patroni'`,
    )
    const locks = await on(engine.primary.url, `select mode from pg_locks where locktype = 'advisory'`)
    for (const one of [...sessions, ...locks]) violate('I12', `left by ended nodes: ${JSON.stringify(one)}`)
    for (const { url, name } of fleet.nodes) {
      const answers = await fetch(url).then(
        () => true,
        () => false,
      )
      if (answers) violate('I12', `${name} still answers`)
    }
  }

  /** I7: if there are replicas, they must have answered, or the run would show nothing about them. */
  const replicas = async (): Promise<Record<string, number>> => {
    const reads = await fleet.outcomes('cellkeep_replica_reads_total')
    if (engine.replicas.length > 0 && !reads.served) violate('I7', 'no replica answered a read')
    return reads
  }
  return { answers, resumed, unnoticed, logs, healed, doctor, leftovers, quiet, replicas }
}

/** How often each outcome was seen. */
export function kindsOf(seen: Pick<Seen, 'what'>[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { what } of seen) counts.set(what, (counts.get(what) ?? 0) + 1)
  return counts
}

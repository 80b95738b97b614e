import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { NotRun, need } from '../../scripts/packaging/check.ts'
import { hasBouncer } from '../helpers/bouncer.ts'

/** The PostgreSQL of Debian's packages, which Patroni runs. */
export const postgresBin = '/usr/lib/postgresql/15/bin'

export type Options = {
  engine: 'pair' | 'patroni'
  minutes: number
  nodes: number
  seed: number
  /** Names of faults; empty means all. */
  faults: string[]
  /** Calls per second, roughly. */
  rate: number
  /** Factor on all time limits, for machines that are busy with other things. */
  slack: number
  /** Standbys that answer reads. */
  replicas: number
  /** Whether the nodes connect through PgBouncer, in transaction mode. */
  pooler: boolean
  report: string | undefined
  keep: boolean
}

/** The run is not possible on this machine. */
export class NotHere extends Error {}

const defaults = { minutes: '3', nodes: '3', rate: '150', slack: '1', replicas: '0' }

export function optionsOf(args: string[]): Options {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args,
    options: {
      ...{ engine: text, minutes: text, nodes: text, seed: text, faults: text, rate: text, slack: text },
      replicas: text,
      pooler: { type: 'boolean' },
      report: text,
      keep: { type: 'boolean' },
    },
  })
  const { engine = 'pair', pooler = false } = values
  if (engine !== 'pair' && engine !== 'patroni') throw new Error('--engine is "pair" or "patroni".')
  const missing = missingFor(engine, pooler)
  if (engine === 'patroni' && (pooler || values.replicas))
    throw new Error('--pooler and --replicas are of the pair: with Patroni every standby answers reads.')
  if (missing.length > 0) throw new NotHere(`Missing: ${missing.join('; ')}.`)
  const number = (name: keyof typeof defaults, least: number): number => {
    const given = Number(values[name] ?? defaults[name])
    if (!(given >= least)) throw new Error(`--${name} takes a number from ${least} up.`)
    return given
  }
  return {
    engine,
    minutes: number('minutes', 0.1),
    nodes: Math.round(number('nodes', 1)),
    rate: number('rate', 1),
    slack: number('slack', 0.1),
    seed: values.seed === undefined ? Math.floor(Math.random() * 1e6) : Number(values.seed),
    faults: values.faults?.split(',') ?? [],
    replicas: Math.round(number('replicas', 0)),
    pooler,
    report: values.report,
    keep: values.keep ?? false,
  }
}

/** What this machine lacks. */
function missingFor(engine: string, pooler: boolean): string[] {
  const missing = pooler && !hasBouncer ? ['PgBouncer (`apt-get install pgbouncer`)'] : []
  if (engine === 'pair') return missing
  for (const [program, debian] of [
    [join(postgresBin, 'postgres'), 'postgresql-15'],
    ['etcd', 'etcd-server'],
    ['haproxy'],
    ['patroni'],
  ] as const)
    try {
      need(program, debian)
    } catch (error) {
      if (!(error instanceof NotRun)) throw error
      missing.push(error.message)
    }
  return missing
}

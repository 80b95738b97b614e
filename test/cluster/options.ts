import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { hasBouncer } from '../helpers/bouncer.ts'

export type Options = {
  minutes: number
  nodes: number
  seed: number
  /** Names of faults; empty: all. */
  faults: string[]
  /** Calls a second, about. */
  rate: number
  /** Bounds of time are as many times longer: for machines that are busy with other things. */
  slack: number
  /** Standbys that answer reads. */
  replicas: number
  /** Whether PgBouncer, in transaction mode, is between the nodes and the wires. */
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
  if (!/^(pair|patroni)$/.test(engine)) throw new Error('--engine is "pair" or "patroni".')
  const missing = missingFor(engine, pooler)
  if (missing.length > 0) throw new NotHere(`Missing: ${missing.join('; ')}.`)
  const number = (name: keyof typeof defaults, least: number): number => {
    const given = Number(values[name] ?? defaults[name])
    if (!(given >= least)) throw new Error(`--${name} takes a number from ${least} up.`)
    return given
  }
  return {
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

function missingFor(engine: string, pooler: boolean): string[] {
  const missing = pooler && !hasBouncer ? ['PgBouncer (`apt-get install pgbouncer`)'] : []
  if (engine === 'pair') return missing
  for (const [program, debian] of [
    ['etcd', 'etcd-server'],
    ['haproxy', 'haproxy'],
  ])
    if (!versionOf(program as string)) missing.push(`${program} (\`apt-get install ${debian}\`)`)
  const [major = 0, minor = 0] = /[\d.]+/.exec(versionOf('patroni'))?.[0].split('.').map(Number) ?? []
  // Older ones let a leader that was frozen take writes which are lost.
  if (major < 3 || (major === 3 && minor < 1)) missing.push('Patroni 3.1 or newer (Debian 12 has 3.0.2)')
  return [...missing, 'the engine itself, which is not written yet']
}

function versionOf(program: string): string {
  try {
    return execFileSync(program, [program === 'haproxy' ? '-v' : '--version'], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

import { type Machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import type { Workload } from './workloads.ts'

/** Requests per second, milliseconds, microseconds of CPU time per request, MB of the server; medians of the rounds. */
export type Figures = Pick<Workload, 'name' | 'connections' | 'bar'> & {
  rate: number
  p50: number
  p99: number
  cpu: number
  databaseCpu: number
  memory: number
}
/** `ratio` compares with the floor slices right before and after. */
export type Measured = Figures & { ratio: { rate: number; p99: number; cpu: number } }

export type Run = {
  machine: Machine
  settings: Record<string, number | string>
  floor: Figures
  workloads: Measured[]
  login?: {
    argonRate: number
    ratio: number
    probeIdleP99: number
    probeStormP99: number
    verifyIdleP99: number
    verifyStormP99: number
  }
}

/** The page of a run: ratios first. */
export function report({ machine, settings, floor, workloads, login }: Run): string {
  const figures = (one: Figures) => [
    ...[one.rate, one.p50, one.p99, one.cpu, one.databaseCpu, one.memory].map(short),
    String(one.connections),
  ]
  const rows = workloads.map((one) => [
    one.name,
    ...[one.ratio.rate, one.ratio.p99, one.ratio.cpu].map(short),
    one.bar ? `≥ ${one.bar.rate}, ≤ ${one.bar.p99}` : '',
    ...figures(one),
  ])
  const ratios = ['rate ÷ floor', 'p99 ÷ floor', 'server CPU ÷ floor', 'bar (rate, p99)']
  const absolute = [
    'req/s',
    'p50 ms',
    'p99 ms',
    'server CPU µs/req',
    'database CPU µs/req',
    'memory MB',
    'connections',
  ]
  const parts = [
    '# Workloads against the floor',
    `Written by \`npm run bench\`. The floor is a bare \`node:http\` JSON echo that gets the requests of
account_verify, on the same Node, in the same run; slices of ${settings.seconds} s alternate, medians of ${settings.rounds}.`,
    table(
      ['Workload', ...ratios, ...absolute],
      [...rows, [floor.name, '1', '1', '1', '', ...figures(floor)]],
    ),
  ]
  if (login)
    parts.push(
      '## Login storm',
      table(
        ['', 'measured', 'bar'],
        [
          ['logins ÷ bare Argon2id verifications', short(login.ratio), '≥ 0.9'],
          ['bare Argon2id verifications per second', short(login.argonRate), ''],
          ['`/health/live` p99 during the storm, ms', short(login.probeStormP99), '≤ 20'],
          ['`/health/live` p99 on the idle server, ms', short(login.probeIdleP99), ''],
          ['account_verify p99: storm ÷ quiet', short(login.verifyStormP99 / login.verifyIdleP99), '≤ 3'],
          ['account_verify p99 during the storm, ms', short(login.verifyStormP99), ''],
          ['account_verify p99 on the idle server, ms', short(login.verifyIdleP99), ''],
        ],
      ),
    )
  parts.push(
    `${machineLine(machine)} ${settings.cells} cells, ${settings.sessions} sessions, fsync ${settings.fsync}.`,
  )
  return `${parts.join('\n\n')}\n`
}

import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import type pg from 'pg'

/** What the numbers of a run depend on. Ratios hold on other machines, absolute numbers do not. */
export type Machine = { cores: number; cpu: string; node: string; postgres: string; load: string; at: string }

/** `load` is the load average when the run began; above the number of cores, other processes disturbed it. */
export async function machine(client: pg.Client): Promise<Machine> {
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    node: process.versions.node,
    postgres: rows[0]?.server_version ?? 'unknown',
    load: readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 2).join(' '),
    at: new Date().toISOString().slice(0, 16),
  }
}

export const machineLine = ({ cores, cpu, node, postgres, load, at }: Machine): string =>
  `${at}Z, ${cores} cores (${cpu}), Node ${node}, PostgreSQL ${postgres}, load average at the start ${load}.`

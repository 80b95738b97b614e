import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** CPU seconds of the process itself, and of all processes below it, such as the embedded PostgreSQL. */
type Cpu = { own: number; below: number }

/**
 * The CPU time used so far; NaN where there is no /proc. Per request it is the most stable figure on a shared
 * machine.
 */
export function cpuOf(pid: number): Cpu {
  try {
    const all = processes()
    const below = descendants(all, pid).reduce((sum, { seconds, ended }) => sum + seconds + ended, 0)
    return { own: all.find(({ id }) => id === pid)?.seconds ?? Number.NaN, below }
  } catch {
    return { own: Number.NaN, below: Number.NaN }
  }
}

/** Gives a process the first processor, and all others below this one the rest (`taskset`, of util-linux). */
export function giveOwnProcessor(pid: number): void {
  const others = descendants(processes(), process.pid).filter(({ id }) => id !== pid)
  const pin = (id: number, processors: string): void => {
    // One that has ended meanwhile is no failure.
    spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', processors, String(id)])
  }
  pin(pid, '0')
  for (const { id } of others) pin(id, `1-${availableParallelism() - 1}`)
}

const ticksPerSecond = 100

type Process = { id: number; parent: number; seconds: number; ended: number }

const processes = (): Process[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)))

const descendants = (all: readonly Process[], pid: number): Process[] =>
  all.filter(({ parent }) => parent === pid).flatMap((one) => [one, ...descendants(all, one.id)])

/** `ended` is the time of its children that have ended, such as the database's sessions. */
function processOf(id: number): Process[] {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
    // The process name, in parentheses, may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const seconds = (at: number) => (Number(fields[at]) + Number(fields[at + 1])) / ticksPerSecond
    return [{ id, parent: Number(fields[1]), seconds: seconds(11), ended: seconds(13) }]
  } catch {
    return []
  }
}

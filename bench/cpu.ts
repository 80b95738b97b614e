import { readdirSync, readFileSync } from 'node:fs'

/** CPU seconds of the process itself, and of all processes below it, such as the embedded PostgreSQL. */
export type Cpu = { own: number; below: number }

/**
 * The CPU time used so far; NaN where there is no /proc. Per request it is the most stable figure on a shared
 * machine.
 */
export function cpuOf(pid: number): Cpu {
  try {
    const all = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => processOf(Number(name)))
    const below = (parent: number): number =>
      all
        .filter((one) => one.parent === parent)
        .reduce((sum, one) => sum + one.seconds + one.ended + below(one.id), 0)
    return { own: all.find(({ id }) => id === pid)?.seconds ?? Number.NaN, below: below(pid) }
  } catch {
    return { own: Number.NaN, below: Number.NaN }
  }
}

const ticksPerSecond = 100

type Process = { id: number; parent: number; seconds: number; ended: number }

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

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** CPU seconds of the process itself, and of all processes below it, such as the embedded PostgreSQL. */
export type Cpu = { own: number; below: number }

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

/** Lowers the priority of all processes below this one; does nothing where there is no /proc. */
export function lowerBelow(pid: number): void {
  if (!existsSync('/proc')) return
  for (const { id } of descendants(processes(), pid))
    try {
      setPriority(id, constants.priority.PRIORITY_LOW)
    } catch {
      // It has ended meanwhile.
    }
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

import type { Seen } from './fleet.ts'
import { kindsOf } from './invariants.ts'
import type { Episode } from './world.ts'

/** `silence_ms`: the longest time without an acknowledged write. */
export type Line = { faults: string; silence_ms: number; healed_ms: number; failed: Record<string, number> }

/** What callers saw during one step. */
export function lineOf({ faults, struck, healed }: Episode, seen: Seen[]): Line {
  const during = seen.filter(({ began, ended }) => ended >= struck && began <= healed)
  const written = during.filter(({ kind, isWrite }) => isWrite && kind === 'ok')
  const successes = written.map(({ ended }) => Math.min(ended, healed))
  const times = [struck, ...successes.sort((a, b) => a - b), healed]
  const silence = Math.max(...times.slice(1).map((at, index) => at - (times[index] as number)))
  return {
    faults: faults.join(' + '),
    silence_ms: Math.round(silence),
    healed_ms: Math.round(healed - struck),
    failed: Object.fromEntries(kindsOf(during.filter(({ kind }) => kind !== 'ok'))),
  }
}

const failures = ({ failed }: Line): string =>
  Object.entries(failed)
    .map(([what, count]) => `${what} × ${count}`)
    .join(', ') || 'no call failed'

export const told = (line: Line): string =>
  `${line.faults}: silence ${line.silence_ms} ms, healed after ${line.healed_ms} ms; ${failures(line)}`

export function tableOf(lines: Line[]): string {
  const rows = lines.map((line) => [line.faults, `${line.silence_ms}`, `${line.healed_ms}`, failures(line)])
  const all = [['faults', 'silence ms', 'healed ms', 'failed'], ...rows]
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')).join('\n')
}

import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { giveOwnProcessor } from './cpu.ts'
import type { Prepared, TakeSlice, Target } from './measure.ts'
import { type Started, temporary } from './processes.ts'
import type { Workload } from './workloads.ts'

/** The share of each part in the processor time of the server's main thread. */
export type Profile = { name: string; shares: Record<Part, number> }

/** How a sample of a profile is counted: under the first of these that fits its frame. */
const kinds = {
  'writing to sockets': ({ functionName, url }) =>
    url === '' && /^(writev|write(Buffer|Utf8String|Latin1String|AsciiString))$/.test(functionName),
  'collecting garbage': ({ functionName }) => functionName === '(garbage collector)',
  'Node: reading, parsing, native': ({ url }) => url === '',
  'Node: HTTP, streams, timers': ({ url }) => url.startsWith('node:'),
  'PostgreSQL driver': ({ url }) => /\/node_modules\/pg(-[a-z]+)?\//.test(url),
  'statements, pool': ({ url }) => /\/dist\/db\//.test(url),
  log: ({ url }) => /\/node_modules\/(pino|sonic-boom)[^/]*\/|\/dist\/log\//.test(url),
  'HTTP edge': ({ url }) => /\/dist\/(http|wire)\//.test(url),
  'guards, method': () => true,
} satisfies Record<string, (frame: Profiler.ProfileNode['callFrame']) => boolean>

export type Part = keyof typeof kinds
export const profiledParts = Object.keys(kinds) as Part[]

/**
 * Starts another node whose profile can be taken, because the profiler costs something even while it rests. A client or
 * a session of the database that a write wakes would run in its place, and the samples would count that as writing: so the
 * node gets a processor of its own. That distorts all other figures, which must be taken before.
 */
export async function profiler(started: Started, beside: Prepared['beside'], slice: TakeSlice) {
  const file = join(await temporary(started), 'profile.json')
  const script = fileURLToPath(new URL('profiler.ts', import.meta.url))
  const node: Target = await beside({ NODE_OPTIONS: `--import=${script}`, BENCH_PROFILE: file })
  giveOwnProcessor(node.pid)
  return async (workload: Workload, seconds: number): Promise<Profile> => {
    rmSync(file, { force: true })
    await slice(workload, node, seconds)
    process.kill(node.pid, 'SIGUSR2')
    await slice(workload, node, seconds)
    process.kill(node.pid, 'SIGUSR2')
    while (!existsSync(file)) await delay(50)
    return { name: workload.name, shares: sharesOf(JSON.parse(readFileSync(file, 'utf8'))) }
  }
}

function sharesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Profile['shares'] {
  const partOf = new Map<number, Part | undefined>()
  for (const { id, callFrame } of nodes) {
    const isOurs = callFrame.functionName !== '(idle)' && !isInspector(callFrame)
    partOf.set(id, isOurs ? profiledParts.find((part) => kinds[part](callFrame)) : undefined)
  }
  const took = Object.fromEntries(profiledParts.map((part) => [part, 0])) as Profile['shares']
  let all = 0
  for (const [at, id] of samples.entries()) {
    const part = partOf.get(id)
    if (part === undefined) continue
    took[part] += timeDeltas[at] ?? 0
    all += timeDeltas[at] ?? 0
  }
  for (const part of profiledParts) took[part] /= all
  return took
}

/** Starting and ending the profile. */
const isInspector = ({ url }: Profiler.ProfileNode['callFrame']): boolean => url === 'node:inspector'

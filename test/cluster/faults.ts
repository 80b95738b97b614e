import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Engine } from './engine.ts'
import { pairFaults, primaryFaults } from './faults-database.ts'
import { poolerFaults, replicaFaults } from './faults-optional.ts'
import { patroniFaults } from './faults-patroni.ts'
import { retention } from './faults-retention.ts'
import type { Node } from './fleet.ts'
import type { cellLoad } from './load/cells.ts'
import type { followerLoad } from './load/followers.ts'
import type { Options } from './options.ts'
import type { Part } from './plan.ts'
import type { World } from './world.ts'

export type Scene<E = Engine> = {
  world: World & { engine: E }
  cells: ReturnType<typeof cellLoad>
  followers: ReturnType<typeof followerLoad>
  random(): number
}
/** `act` causes the fault and heals it: afterwards everything runs again, though it may still be recovering. */
export type Fault<E = Engine> = { part: Part; what: string; act(scene: Scene<E>): Promise<void> }
export type Acts<E = Engine> = Record<string, Omit<Fault<E>, 'part'>>

const nodeOf = ({ world, random }: Scene): Node =>
  world.fleet.nodes[Math.floor(random() * world.fleet.nodes.length)] as Node

/** Stops a node as a supervisor does, which no caller may notice, and starts it again. */
async function cycle({ world }: Scene, node: Node): Promise<void> {
  node.isAway = true
  const { code } = await node.process.end('SIGTERM')
  if (code !== 0) world.violate('I13', `${node.name} ended with ${code} after SIGTERM`)
  await world.fleet.restart(node)
}

async function command({ world }: Scene, ...args: string[]): Promise<void> {
  const { code, stderr } = await world.fleet.run(...args)
  if (code !== 0) throw new Error(`cellkeep ${args.join(' ')} ended with ${code}: ${stderr}`)
}

/** A module that moves the clock of its process ten minutes ahead. */
const clockModule = `const Real = Date
globalThis.Date = class extends Real {
  constructor(...given) {
    super(...(given.length > 0 ? given : [Real.now() + 600_000]))
  }
  static now() {
    return Real.now() + 600_000
  }
}`

const node: Acts = {
  'node-kill': {
    what: 'kill -9 of a node, started again at once',
    act: async (scene) => {
      const one = nodeOf(scene)
      const dead = { from: performance.now(), to: Number.POSITIVE_INFINITY }
      one.owesNothing.push(dead)
      await one.process.end('SIGKILL')
      await scene.world.fleet.restart(one)
      dead.to = performance.now() + 500
    },
  },
  'node-term': { what: 'SIGTERM of a node, started again', act: (scene) => cycle(scene, nodeOf(scene)) },
  'node-freeze': {
    what: 'SIGSTOP of a node for 5 s',
    act: async (scene) => {
      const { process } = nodeOf(scene)
      process.signal('SIGSTOP')
      await delay(5_000)
      process.signal('SIGCONT')
    },
  },
  'node-drain': {
    what: 'a node is drained and resumed',
    act: async (scene) => {
      const { name } = nodeOf(scene)
      await command(scene, 'nodes', 'drain', name, '--wait')
      await command(scene, 'nodes', 'resume', name)
    },
  },
  'node-clock': {
    what: 'the clock of a node is ten minutes ahead',
    act: async (scene) => {
      const one = nodeOf(scene)
      const path = join(one.process.cwd, 'clock.mjs')
      await writeFile(path, clockModule)
      one.env.NODE_OPTIONS = `--import ${pathToFileURL(path)}`
      await cycle(scene, one)
      await delay(5_000)
      delete one.env.NODE_OPTIONS
      await cycle(scene, one)
    },
  },
}

const wire: Acts = {
  'wire-cut': {
    what: 'every database connection is cut, eight times',
    act: async ({ world: { engine }, random }) => {
      for (let n = 0; n < 8; n++) {
        for (const one of engine.wires) one.cut()
        await delay(600 * random())
      }
    },
  },
  'wire-mute': {
    what: 'for 4 s no answer of the database arrives',
    act: async ({ world: { engine } }) => {
      for (const one of engine.wires) one.mute(true)
      await delay(4_000)
      for (const one of engine.wires) one.mute(false)
    },
  },
  'wire-delay': {
    what: 'for 5 s the database is 200 ms away',
    act: async ({ world: { engine } }) => {
      for (const one of engine.wires) one.delay(100)
      await delay(5_000)
      for (const one of engine.wires) one.delay(0)
    },
  },
  'commit-swallowed': {
    what: 'the answers of the next ten COMMITs are lost',
    act: async ({ world: { engine } }) => {
      for (const one of engine.wires) one.swallow(10)
      await delay(3_000)
      for (const one of engine.wires) one.swallow(0)
    },
  },
}

const of = (part: Part, faults: Acts): [string, Fault][] =>
  Object.entries(faults).map(([name, fault]) => [name, { part, ...fault }])

export const faultsOf = ({ engine, replicas, pooler }: Options): Record<string, Fault> => ({
  ...Object.fromEntries([
    ...of('node', node),
    ...of('database', { retention, ...primaryFaults, ...(engine === 'pair' ? pairFaults : patroniFaults) }),
    ...of('wire', wire),
  ]),
  ...((replicas > 0 || engine === 'patroni') && replicaFaults),
  ...(pooler && poolerFaults),
})

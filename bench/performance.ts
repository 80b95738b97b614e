import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { drivers } from './drivers.ts'
import { defaultHashing } from './hashing.ts'
import { memoryOf, password, prepare, type Slice, slicer, summary, type Target } from './measure.ts'
import { median } from './numbers.ts'
import { startPeers } from './peers/peers.ts'
import { type Performance, page, type Release, release, sizing } from './performance-page.ts'
import { ask, helper, Started } from './processes.ts'
import { type Profile, profiler } from './profile.ts'
import { floorWorkload, type Workload, workloads } from './workloads.ts'
import { idleConnection, pgbench, sizes } from './yardsticks.ts'

/**
 * `npm run performance`: one run that measures everything by turns (the product, its peers on the same database
 * server, the floor and the yardsticks) and writes docs/performance.md, its charts, and the table of sizes in
 * docs/operations.md. It takes some ten minutes on two cores.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1.5' },
    cells: { type: 'string', default: '100000' },
    /** Where the pages go; the default is the repository. */
    out: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const [rounds, seconds, cells] = [Number(flags.rounds), Number(flags.seconds), Number(flags.cells)]
const listSeconds = 20

/** Each compared task by name, and the workload that does it here. */
const compared: Record<string, string> = {
  'session check': 'account_verify',
  'sign in': 'login',
  'get, private': 'cell_get own',
  'get, public': 'cell_get anonymous',
  'list 50 own': 'cell_list own',
  'list 50 visible': 'cell_list',
  create: 'cell_create',
}
const comparedConnections = 32
/** Few, and for longer: a sign-in takes long, and those in flight when a slice ends do not count. */
const signInConnections = 4

/** The last run of each version. */
const historyFile = join(flags.out, 'bench/results/history.json')
const history = async (): Promise<Release[]> =>
  JSON.parse(await readFile(historyFile, 'utf8').catch(() => '[]'))

const started = new Started()
try {
  const run = await measure()
  const releases = [...(await history()).filter(({ version }) => version !== run.version), release(run)]
  await writeFile(historyFile, `${JSON.stringify(releases, null, 2)}\n`)
  const { files, text } = page(run, releases)
  const docs = join(flags.out, 'docs')
  for (const [name, content] of Object.entries(files)) await writeFile(join(docs, name), content)
  await writeFile(join(docs, 'performance.md'), text)
  const operations = await readFile(join(docs, 'operations.md'), 'utf8')
  await writeFile(
    join(docs, 'operations.md'),
    operations.replace(/<!-- sizing -->.*<!-- \/sizing -->/s, () => sizing(run)),
  )
  console.log(text)
} finally {
  await started.close()
}

async function measure(): Promise<Performance> {
  const hashing = defaultHashing()
  const { server, world, client, facts, socket, beside } = await prepare(started, {
    cells,
    sessions: 500,
    hashing,
  })
  const slice = slicer(started, seconds)
  const owners = Math.max(1000, cells / 100)
  const peers = await startPeers(started, client, { server, host: socket, cells, owners })
  const ours = [...workloads(world, password), ...drivers(world)]
  const floor = floorWorkload(world.cookies)
  const bare = helper(started, 'floor.ts')
  const echo: Target = { port: await ask<number>(bare), pid: bare.pid as number }

  /** Everything that takes part in the turns. */
  const turns: { system: string; work: string; workload: Workload; target: Target; slices: Slice[] }[] = []
  const add = (system: string, work: string, workload: Workload, target: Target) =>
    turns.push({ system, work, workload, target, slices: [] })
  add('floor', 'floor', floor, echo)
  for (const [work, name] of Object.entries(compared)) {
    const workload = ours.find((one) => one.name === name) as Workload
    const connections = work === 'sign in' ? signInConnections : comparedConnections
    add('Cellkeep', work, { ...workload, connections }, server)
    for (const { name: peer, requests, target } of peers)
      if (requests[work]) add(peer, work, { name: work, requests: requests[work], connections }, target)
  }
  const named = new Set(Object.values(compared))
  for (const workload of ours) if (!named.has(workload.name)) add('Cellkeep', '', workload, server)
  const sockets = helper(started, 'socket-floor.ts')
  const bareSockets: Target = { port: await ask<number>(sockets), pid: sockets.pid as number }
  const roundTrip = ours.find(({ name }) => name === 'WebSocket round trip') as Workload
  add('bare ws', '', roundTrip, bareSockets)

  // Both on a server that has done nothing else yet.
  const connection = await idleConnection(server)
  const lists = ours.find(({ name }) => name === 'cell_list') as Workload
  const memories: number[] = []
  for (let second = 0; second < listSeconds; second++)
    memories.push((await slice({ ...lists, connections: comparedConnections }, server, 1)).memory)

  for (let round = 0; round <= rounds; round++)
    for (const { work, workload, target, slices } of turns) {
      const taken = await slice(workload, target, work === 'sign in' ? 4 * seconds : seconds)
      // The first round warms up.
      if (round > 0) slices.push(taken)
    }
  const argon = await ask<number>(helper(started, 'argon.ts'), { options: hashing, seconds: 5 })
  const statements = await pgbench(started, { socket, server, cells, seconds: 3 })
  const profileOf = await profiler(started, beside, slice)
  const profiles: Profile[] = []
  // A sign-in spends its time in the threads that hash.
  for (const { work, workload, target } of turns)
    if (target === server && work !== '' && work !== 'sign in')
      profiles.push(await profileOf(workload, 2 * seconds))
  const { version } = JSON.parse(await readFile(join(import.meta.dirname, '../package.json'), 'utf8'))
  return {
    facts,
    version,
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    settings: { rounds, seconds, cells, connections: comparedConnections },
    turns: turns.map(({ system, work, workload, slices }) => ({
      system,
      work,
      ...summary(workload, slices),
    })),
    // At one moment it may be a third more, just before a collection.
    memoryAfterLists: median(memories.slice(listSeconds / 2)),
    memoryOfFiles: memoryOf(server.pid, 'RssFile'),
    profiles,
    argon,
    statements,
    sizes: { connection, ...(await sizes(client)) },
  }
}

import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { createPasswords } from '../src/auth/password.ts'
import { connectionTo } from '../src/embedded/postgres-process.ts'
import { defaultHashing } from './hashing.ts'
import { type Machine, machine, machineLine } from './machine.ts'
import { type MannWhitney, mannWhitney } from './mann-whitney.ts'
import { median, shuffled, table } from './numbers.ts'
import { product, Started, temporary } from './processes.ts'
import { generateWorld } from './world.ts'

/**
 * `npm run bench:timing`: does the time of a refused login reveal whether the username exists? It tries known and
 * unknown names in random order over real HTTP, with and without the failure floor of production, and with the floor
 * of an import whose hashes are bcrypt of cost 12, and compares them by a Mann-Whitney U test. Exits 1 if p ≤ 0.05. Without any difference one run in twenty does, so a failure
 * counts only if a second run repeats it.
 */
const { values: flags } = parseArgs({
  options: {
    attempts: { type: 'string', default: '400' },
    /** Some of `on`, `off` and `imported`, where the known names are those of imported accounts. */
    floor: { type: 'string', default: 'on,off,imported' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const attempts = Number(flags.attempts)
const level = 0.05
/** Accounts whose names are tried; the unknown names have the same length. */
const names = 100
const warmUp = 20

type Kind = 'known' | 'unknown'
type Result = MannWhitney & { floor: string; known: number; unknown: number }

const started = new Started()
try {
  const results: Result[] = []
  let facts: Machine | undefined
  for (const floor of flags.floor.split(',')) {
    const { port, client } = await setUp(floor)
    facts ??= await machine(client)
    results.push(await measure(floor, port))
  }
  const text = report(results, facts as Machine)
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'timing.md'), text)
  }
  process.exitCode = results.every(({ p }) => p > level) ? 0 : 1
} finally {
  await started.close()
}

async function measure(floor: string, port: number): Promise<Result> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const kinds: Kind[] = Array.from({ length: 2 * attempts }, (_, i) => (i % 2 === 0 ? 'known' : 'unknown'))
  const times: Record<Kind, number[]> = { known: [], unknown: [] }
  const prefix = { known: floor === 'imported' ? 'past' : 'user', unknown: 'none' }
  for (const kind of kinds.slice(0, warmUp)) await attempt(port, agent, prefix[kind])
  for (const kind of shuffled(kinds)) times[kind].push(await attempt(port, agent, prefix[kind]))
  agent.destroy()
  const { known, unknown } = times
  return { floor, ...mannWhitney(known, unknown), known: median(known), unknown: median(unknown) }
}

/** One refused login; resolves to the milliseconds from sending to the last byte of the response. */
function attempt(port: number, agent: Agent, prefix: string): Promise<number> {
  const index = Math.floor(Math.random() * names)
  const body = JSON.stringify({ username: `${prefix}${index}`, password: 'a wrong password' })
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const begun = performance.now()
    const sent = request({
      port,
      host: '127.0.0.1',
      path: '/api/account/login',
      method: 'POST',
      agent,
      headers,
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 401) resolve(performance.now() - begun)
        else reject(new Error(`A login returned ${response.statusCode} instead of 401`))
      })
    })
    sent.end(body)
  })
}

/** The product with production settings, except that rate limits are off. */
async function setUp(floor: string) {
  const dataDir = join(await temporary(started), 'data')
  const { port } = await product(started, dataDir, {
    CELLKEEP_LIMIT_LOGIN_IP: 'off',
    CELLKEEP_LIMIT_LOGIN_ACCOUNT: 'off',
    ...(floor === 'off' && { CELLKEEP_LOGIN_FAIL_FLOOR_MS: '0', CELLKEEP_LOGIN_FAIL_JITTER_MS: '0' }),
  })
  const client = new pg.Client(connectionTo(join(dataDir, 'socket'), 'cellkeep'))
  await client.connect()
  started.add(() => client.end())
  const passwords = createPasswords(defaultHashing())
  await generateWorld(client, { cells: 1000, passwordHash: await passwords.hash('the right password') })
  if (floor === 'imported') await importPast(dataDir)
  return { port, client }
}

async function importPast(dataDir: string): Promise<void> {
  const lines = Array.from({ length: names }, (_, index) =>
    JSON.stringify({ username: `past${index}`, password: `$2b$12$${'a'.repeat(21)}O${'a'.repeat(31)}` }),
  )
  const file = join(dataDir, '..', 'past.jsonl')
  await writeFile(file, lines.join('\n'))
  const bin = fileURLToPath(new URL('../bin/cellkeep.js', import.meta.url))
  await promisify(execFile)(process.execPath, [bin, 'account', 'import', file], {
    cwd: join(dataDir, '..'),
    env: { PATH: process.env.PATH, CELLKEEP_DATA_DIR: dataDir },
  })
}

function report(results: readonly Result[], facts: Machine): string {
  const rows = results.map(({ floor, u, z, p, known, unknown }) => [
    floor,
    ...[u, z].map((value) => String(Number(value.toPrecision(5)))),
    p.toFixed(4),
    ...[known, unknown].map((ms) => ms.toFixed(3)),
    p > level ? 'no difference' : 'DIFFERENT',
  ])
  return `${[
    '# Refused logins: known against unknown usernames',
    `Written by \`npm run bench:timing\`: ${attempts} attempts each, in random order over HTTP, Mann-Whitney U test, bar p > ${level}.`,
    table(['Failure floor', 'U', 'z', 'p', 'known, median ms', 'unknown, median ms', ''], rows),
    machineLine(facts),
  ].join('\n\n')}\n`
}

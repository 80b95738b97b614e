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
 * `npm run bench:timing`: does the time of an answer reveal what stands behind a name? It sends refused logins,
 * requests for a recovery link and refused signups over real HTTP with the names of several kinds of accounts, in
 * random order, and compares each kind with names that nobody has by a Mann-Whitney U test. Logins are also tried
 * without the failure floor of production, and with the floor of an import whose hashes are bcrypt of cost 12.
 * Exits 1 if p ≤ 0.01 anywhere; one comparison in a hundred is so by chance, so a failure counts if a second run
 * repeats it.
 */
const { values: flags } = parseArgs({
  options: {
    attempts: { type: 'string', default: '400' },
    /** Only the series whose name contains this text. */
    only: { type: 'string', default: '' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const attempts = Number(flags.attempts)
const level = 0.01
/** Accounts of each kind; all names have the same length. */
const names = 40
const warmUp = 20
const password = 'a wrong password'

/** The names of a kind are its prefix and a number. The generated world has `user0` to `user999`. */
const prefixes = {
  unknown: 'none1',
  known: 'user1',
  factor: 'user2',
  deleted: 'user3',
  locked: 'user4',
  imported: 'past1',
}
type Kind = keyof typeof prefixes
const nameOf = (kind: Kind, index: number): string => prefixes[kind] + String(index).padStart(2, '0')

type Series = {
  name: string
  path: string
  status: number
  body: (name: string) => object
  kinds: readonly Kind[]
  env: Record<string, string>
}
const login = {
  path: '/api/account/login',
  status: 401,
  body: (username: string) => ({ username, password }),
  kinds: ['known', 'factor', 'deleted'],
  env: { CELLKEEP_LIMIT_LOGIN_IP: 'off', CELLKEEP_LIMIT_LOGIN_ACCOUNT: 'off' },
} as const
const others = {
  CELLKEEP_LIMIT_LOGIN_IP: 'off',
  CELLKEEP_MAIL: 'file',
  CELLKEEP_PUBLIC_URL: 'http://localhost:4040',
}
const every: readonly Series[] = [
  { ...login, name: 'login' },
  {
    ...login,
    name: 'login, no failure floor',
    env: { ...login.env, CELLKEEP_LOGIN_FAIL_FLOOR_MS: '0', CELLKEEP_LOGIN_FAIL_JITTER_MS: '0' },
  },
  { ...login, name: 'login, imported accounts', kinds: ['known', 'imported'] },
  {
    name: 'recover',
    path: '/api/account/recover',
    status: 200,
    body: (identifier) => ({ identifier }),
    kinds: ['known', 'factor', 'deleted', 'locked'],
    env: { ...others, CELLKEEP_LIMIT_RECOVER_IP: 'off', CELLKEEP_LIMIT_RECOVER_IDENTIFIER: 'off' },
  },
  {
    name: 'signup, closed',
    path: '/api/account/signup',
    status: 403,
    body: (username) => ({ username, password }),
    kinds: ['known', 'factor', 'deleted', 'locked'],
    env: { ...others, CELLKEEP_LIMIT_SIGNUP_IP: 'off', CELLKEEP_LIMIT_SIGNUP_USERNAME: 'off' },
  },
]

type Result = MannWhitney & { series: string; kind: Kind; ms: number; unknownMs: number }

const started = new Started()
try {
  const results: Result[] = []
  let facts: Machine | undefined
  for (const series of every.filter(({ name }) => name.includes(flags.only))) {
    const { port, client } = await setUp(series)
    facts ??= await machine(client)
    results.push(...(await measure(series, port)))
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

async function measure(series: Series, port: number): Promise<Result[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const kinds: Kind[] = ['unknown', ...series.kinds]
  const one = (kind: Kind) => send(port, agent, series, nameOf(kind, Math.floor(Math.random() * names)))
  for (let i = 0; i < warmUp; i++) await one(kinds[i % kinds.length] as Kind)
  const times = new Map(kinds.map((kind) => [kind, [] as number[]]))
  const order = kinds.flatMap((kind) => Array<Kind>(attempts).fill(kind))
  for (const kind of shuffled(order)) times.get(kind)?.push(await one(kind))
  agent.destroy()
  const [unknown = [], ...rest] = times.values()
  return rest.map((sample, i) => ({
    ...{ series: series.name, kind: series.kinds[i] as Kind, ...mannWhitney(sample, unknown) },
    ...{ ms: median(sample), unknownMs: median(unknown) },
  }))
}

/** One refused request; resolves to the milliseconds from sending to the last byte of the response. */
function send(
  port: number,
  agent: Agent,
  { path, status, body }: Pick<Series, 'path' | 'status' | 'body'>,
  name: string,
): Promise<number> {
  const text = JSON.stringify(body(name))
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    const begun = performance.now()
    const sent = request({ port, host: '127.0.0.1', path, method: 'POST', agent, headers })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === status) resolve(performance.now() - begun)
        else reject(new Error(`${path} returned ${response.statusCode} instead of ${status}`))
      })
    })
    sent.end(text)
  })
}

/** The product with production settings except what the series sets, and an account of each kind under each name. */
async function setUp({ kinds, env }: Series) {
  const dataDir = join(await temporary(started), 'data')
  const { port } = await product(started, dataDir, env)
  const client = new pg.Client(connectionTo(join(dataDir, 'socket'), 'cellkeep'))
  await client.connect()
  started.add(() => client.end())
  const passwords = createPasswords(defaultHashing())
  await generateWorld(client, { cells: 1000, passwordHash: await passwords.hash('the right password') })
  const prefix = (kind: Kind) => `username ~ '^${prefixes[kind]}[0-9][0-9]$'`
  await client.query(`
    update account set email = username || '@x.example', email_key = username || '@x.example', email_verified = true;
    insert into account_totp (account_id, secret_sealed, confirmed_at)
      select id, 'sealed', now() from account where ${prefix('factor')};
    update account set deleted_at = now() where ${prefix('deleted')}`)
  if (kinds.includes('imported')) await importPast(dataDir)
  if (kinds.includes('locked')) await lock(port)
  return { port, client }
}

/** Uses up the failed logins of each name. */
async function lock(port: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  const all = Array.from({ length: names }, (_, index) => nameOf('locked', index))
  await Promise.all(
    all.map(async (name) => {
      for (let i = 0; i < 10; i++) await send(port, agent, login, name)
      await send(port, agent, { ...login, status: 429 }, name)
    }),
  )
  agent.destroy()
}

async function importPast(dataDir: string): Promise<void> {
  const lines = Array.from({ length: names }, (_, index) =>
    JSON.stringify({
      username: nameOf('imported', index),
      password: `$2b$12$${'a'.repeat(21)}O${'a'.repeat(31)}`,
    }),
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
  const rows = results.map(({ series, kind, u, z, p, ms, unknownMs }) => [
    series,
    kind,
    ...[u, z].map((value) => String(Number(value.toPrecision(5)))),
    p.toFixed(4),
    ...[ms, unknownMs].map((value) => value.toFixed(3)),
    p > level ? 'no difference' : 'DIFFERENT',
  ])
  return `${[
    '# What the time of an answer tells about a name',
    `Written by \`npm run bench:timing\`: ${attempts} attempts of each kind of account and as many with names that nobody has, in random order over HTTP, Mann-Whitney U test, bar p > ${level}. \`factor\`: with a second factor; \`locked\`: failed logins used up; \`imported\`: with a hash of bcrypt, cost 12.`,
    table(['Request', 'Account', 'U', 'z', 'p', 'median ms', 'unknown, median ms', ''], rows),
    machineLine(facts),
  ].join('\n\n')}\n`
}

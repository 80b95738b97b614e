import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { cloneDatabase, startCluster, toUrl } from '../src/testing/cluster.ts'

/** The directory of the examples, the Node that runs them, and a scratch directory. */
export type Place = { root: string; node: string; directory: string }

/** Runs the standalone example against a server; resolves to its output. */
export async function runStandalone(place: Place, url: string, tokenFile: string): Promise<string> {
  return await run(place, 'examples/standalone/import-docs.ts', [url], { TOKEN_FILE: tokenFile })
}

/** Runs the embedding example: its own test, then its server, visited anonymously and signed in. */
export async function runEmbed(place: Place): Promise<void> {
  await run(place, 'examples/embed/check.ts')
  const cluster = await startCluster()
  const database = await cloneDatabase(cluster.connection, 'template0')
  const tokenFile = join(place.directory, 'embed_token')
  const server = spawn(place.node, ['examples/embed/server.ts'], {
    cwd: place.root,
    env: {
      ...environment(place),
      DATABASE_URL: toUrl(database.connection),
      COOKIE_KEY: 'k'.repeat(43),
      PORT: '0',
      TOKEN_FILE: tokenFile,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(server, 'exit')
  try {
    const [url] = await once(createInterface({ input: server.stdout }), 'line')
    assert.equal(await text(url), 'Hello, stranger.\n')
    const token = (await readFile(tokenFile, 'utf8')).trim()
    const made = await fetch(`${url}/api/account/bootstrap`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, username: 'ada', password: 'correct horse battery' }),
    })
    const [cookie = ''] = made.headers.getSetCookie()
    assert.equal(await text(url, cookie.split(';')[0]), 'Hello, ada.\n')
    server.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  } finally {
    server.kill('SIGKILL')
    await cluster.stop()
  }
}

/** Generates the Python client from the document of the server, checks its types and uses it. */
export async function runPython(place: Place, url: string, token: string): Promise<void> {
  const isThere = 'import sys; sys.exit(sys.version_info < (3, 11))'
  if (!(await succeeds('python3', ['-c', isThere])))
    return console.log('There is no Python 3.11 or newer on this machine: its example was not run.')
  const directory = join(place.directory, 'python')
  await cp(join(place.root, 'examples/python'), directory, { recursive: true })
  const python = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, CELLKEEP_TOKEN: token, PYTHONDONTWRITEBYTECODE: '1' }
    return (await promisify(execFile)('python3', args, { cwd: directory, env })).stdout
  }
  assert.match(await python('generate.py', url, 'cellkeep_client.py'), /cellkeep_client\.py: \d+ methods/)
  console.log(await python('check_types.py', url))
  const mypy = ['-m', 'mypy', '--strict', 'generate.py', 'cellkeep_client.py', 'notes.py']
  if (await succeeds('python3', ['-m', 'mypy', '--version'])) console.log(await python(...mypy))
  const said = await python('notes.py', url)
  console.log(said)
  assert.deepEqual(said.trimEnd().split('\n'), [
    'Signed in as ada.',
    'Notes, newest first: Note 3, Note 2, Note 1.',
    'Note 3, changed, version 2.',
    'Refused: cell_version_conflict, the cell is at version 2.',
    'Refused: invalid_params: A UUID is required, such as 3f2b8c1e-0d4a-4b6e-9f0a-7c5d2e1b8a90.',
    'Refused: credential_type_required.',
    'Without a token: authentication_required.',
  ])
}

const succeeds = (command: string, args: string[]): Promise<boolean> =>
  promisify(execFile)(command, args).then(
    () => true,
    () => false,
  )

/** An environment in which `node` is the chosen one, also for child processes. */
export const environment = ({ node }: Pick<Place, 'node'>): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${dirname(node)}${delimiter}${process.env.PATH}`,
})

const text = async (url: string, cookie?: string): Promise<string> =>
  (await fetch(url, { headers: cookie === undefined ? {} : { cookie } })).text()

async function run(
  place: Place,
  file: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(place.node, [file, ...args], {
    cwd: place.root,
    env: { ...environment(place), ...env },
  })
  assert.equal(stderr, '', 'no warning')
  return stdout
}

/** Runs `cellkeep start` in the directory with only the port set. */
export async function withServer(place: Place, work: (url: string) => Promise<void>): Promise<void> {
  const server = spawn(join(place.root, 'node_modules/.bin/cellkeep'), ['start'], {
    cwd: place.directory,
    env: { ...environment(place), CELLKEEP_PORT: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(server, 'exit')
  try {
    const [line] = await once(createInterface({ input: server.stderr }), 'line')
    const [url] = /http:\S+/.exec(line) ?? assert.fail(line)
    await work(url)
  } finally {
    server.kill('SIGTERM')
  }
  assert.deepEqual(await ended, [0, null])
}

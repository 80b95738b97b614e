import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
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

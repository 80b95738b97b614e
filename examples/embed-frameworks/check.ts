/** `npm run check`: signs in to each server, calls it, connects a WebSocket, reads the application's page, stops it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient } from 'cellkeep/client'
import { createLive } from 'cellkeep/client/live'

const credentials = { username: 'ada', password: 'correct horse battery' }

for (const name of ['express', 'hono', 'fastify'])
  await inDirectory(async (directory) => {
    const env = { ...process.env, DATA_DIR: directory, PORT: '0', NODE_OPTIONS: '' }
    const server = spawn(process.execPath, [`${name}.ts`], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(server, 'exit')
    // A socket that is open does not keep the server from its end.
    let live: { close(): void } | undefined
    try {
      const [port] = await listening(server.stdout)
      live = await check(`http://127.0.0.1:${port}`, directory)
    } finally {
      server.kill('SIGTERM')
    }
    assert.deepEqual(await ended, [0, null])
    live?.close()
    console.log(`${name}: ok`)
  })

await inDirectory(async (directory) => {
  process.env.DATA_DIR = directory
  const { handle, close } = await import('./fetch.ts')
  const fetch = async (input: Parameters<typeof globalThis.fetch>[0], init?: RequestInit) =>
    handle(new Request(input, init))
  await check('http://localhost', directory, fetch)
  await close()
  console.log('fetch: ok')
})

async function check(url: string, directory: string, fetch?: typeof globalThis.fetch) {
  const page = async (cookie = '') => (await (fetch ?? globalThis.fetch)(url, { headers: { cookie } })).text()
  assert.equal(await page(), 'Hello, stranger.')

  const client = createClient({ url, jar: true, fetch })
  const token = (await readFile(join(directory, 'bootstrap_token'), 'utf8')).trim()
  await client.account.bootstrap({ token, ...credentials })
  const { cell } = await client.cell_create({ data: { label: 'First' } })
  assert.equal((await client.cell_get({ id: cell.id })).cell.version, 1)

  const login = await (fetch ?? globalThis.fetch)(`${url}/api/account/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(credentials),
  })
  const [cookie = ''] = login.headers.getSetCookie()
  assert.equal(await page(cookie.split(';', 1)[0]), 'Hello, ada.')

  if (fetch) return undefined // Such a host has no WebSocket.
  const live = createLive(client)
  assert.equal((await live.account_verify()).username, 'ada')
  return live
}

/** The port in the first lines of the output. */
async function listening(output: NodeJS.ReadableStream): Promise<string[]> {
  for await (const line of createInterface({ input: output })) {
    const [, port] = /port: (\d+)/.exec(line) ?? []
    if (port) return [port]
  }
  throw new Error('The server ended before it listened.')
}

/** A directory that the user of the embedded database can enter, even if this runs as root. */
async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const parent = await realpath(await mkdtemp(join(tmpdir(), 'ck-frameworks-')))
  await chmod(parent, 0o711)
  try {
    await work(join(parent, 'data'))
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

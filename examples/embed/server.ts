/**
 * An application with Cellkeep inside, on its own PostgreSQL:
 *
 *     DATABASE_URL=postgres://… COOKIE_KEY=… node examples/embed/server.ts
 *
 * Cellkeep answers below `/api`; everything else is the application's.
 */
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
// In a project of your own: import … from 'cellkeep'
import { createServer, createService, ServiceError } from '../../src/index.ts'
import { actions, hooks, roles } from './library.ts'

const { DATABASE_URL, COOKIE_KEY, PORT = '3000', TOKEN_FILE = 'bootstrap_token' } = process.env
if (!DATABASE_URL || !COOKIE_KEY)
  throw new Error('Set DATABASE_URL and COOKIE_KEY; `npx cellkeep keys generate` makes a key.')

const service = await createService({
  database_url: DATABASE_URL,
  cookie_keys: [COOKIE_KEY],
  cookie_secure: false, // This example uses plain http on the loopback address.
  bootstrap: 'live',
  bootstrap_token_path: TOKEN_FILE,
  log_level: 'warn',
  roles,
  hooks,
  actions,
})

const server = createServer(service, {
  async request(request, response) {
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end(`Hello, ${await visitor(request)}.\n`)
  },
})

/** Calls in process with the same guards as over HTTP: the visitor's cookie identifies the caller. */
async function visitor({ headers: { cookie } }: IncomingMessage): Promise<string> {
  try {
    return (await service.call('account_verify', {}, { headers: cookie ? { cookie } : {} })).username
  } catch (error) {
    if (error instanceof ServiceError && error.data.reason === 'authentication_required') return 'stranger'
    throw error
  }
}

server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    service.leave('draining')
    server.close(() => service.close())
    server.closeIdleConnections()
  })

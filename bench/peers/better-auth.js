import { once } from 'node:events'
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import pg from 'pg'
import { answer, people, request } from './peer.js'

/** better-auth as its documentation sets it up with PostgreSQL: e-mail and password, sessions read from the database. */
const { database, host } = JSON.parse(process.argv[2])
const options = {
  database: new pg.Pool({ host, database, user: 'cellkeep', max: 20 }),
  secret: 'a secret of the bench, long enough for it',
  baseURL: 'http://127.0.0.1',
  trustedOrigins: ['*'],
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
}
await (await getMigrations(options)).runMigrations()
const auth = betterAuth(options)
const server = createServer(toNodeHandler(auth)).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address()

const sessions = []
for (let at = 0; at < people; at++) {
  const { headers } = await auth.api.signUpEmail({
    body: { name: `user${at}`, email: `user${at}@example.org`, password: 'a bench password' },
    returnHeaders: true,
  })
  sessions.push(
    headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; '),
  )
}
const origin = { origin: 'http://127.0.0.1' }
answer(port, {
  'session check': sessions.map((cookie) => request('GET', '/api/auth/get-session', { cookie })),
  'sign in': sessions.map((_, at) =>
    request('POST', '/api/auth/sign-in/email', origin, {
      email: `user${at}@example.org`,
      password: 'a bench password',
    }),
  ),
})

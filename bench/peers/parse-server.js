import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { ParseServer } from 'parse-server'
import pg from 'pg'
import { answer, people, request } from './peer.js'

/**
 * Parse Server as its documentation sets it up with PostgreSQL, filled with as many objects of as many owners as the
 * world of the bench: a third public, the rest readable by their owner.
 */
const { database, host, cells, owners } = JSON.parse(process.argv[2])
const app = express()
const server = createServer(app).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address()
const parse = new ParseServer({
  databaseURI: `postgres://cellkeep@localhost/${database}`,
  databaseOptions: { host },
  appId: 'bench',
  masterKey: 'a master key of the bench',
  serverURL: `http://127.0.0.1:${port}/parse`,
  allowClientClassCreation: true,
  silent: true,
  logLevel: 'error',
  verbose: false,
  logsFolder: null,
})
await parse.start()
app.use('/parse', parse.app)

const id = { 'x-parse-application-id': 'bench' }
async function call(method, path, headers, body) {
  const response = await fetch(`http://127.0.0.1:${port}/parse${path}`, {
    method,
    headers: { ...id, ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const result = await response.json()
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(result)}`)
  return result
}

const users = []
for (let at = 0; at < people; at++)
  users.push(await call('POST', '/users', {}, { username: `user${at}`, password: 'a bench password' }))
const text = 'Some words that a person might keep. '.repeat(8)
const note = (userId) => ({
  label: 'A note',
  text,
  rank: 1,
  owner: userId,
  ACL: { [userId]: { read: true, write: true } },
})
for (const { objectId, sessionToken } of users)
  await call('POST', '/classes/Cell', { 'x-parse-session-token': sessionToken }, note(objectId))

// The rest directly, as it would take an hour through the server.
const client = new pg.Client({ host, database, user: 'cellkeep' })
await client.connect()
await client.query(
  `insert into "Cell" ("objectId", "createdAt", "updatedAt", label, text, rank, owner, _rperm, _wperm)
   select 'made' || i, now() - i * interval '1 minute', now() - i * interval '1 minute', 'Cell ' || i,
     repeat('word ', 60), i, who, case when i % 10 < 3 then array['*'] else array[who] end, array[who]
   from generate_series(1, $1::int) i,
     lateral (select coalesce(($3::text[])[1 + i % $2::int], 'user' || i % $2::int) as who) w`,
  [cells, owners, users.map(({ objectId }) => objectId)],
)
// What its documentation advises: indexes on the columns of frequent queries.
await client.query(`create index on "Cell" (owner, "createdAt"); create index on "Cell" ("createdAt")`)
await client.query('vacuum (analyze) "Cell"')
const { rows } = await client.query(
  `select "objectId" as id, owner, _rperm[1] = '*' as is_public from "Cell" where "objectId" like 'made%' and owner = any($1)`,
  [users.map(({ objectId }) => objectId)],
)
await client.end()

const sessionOf = new Map(
  users.map((user) => [user.objectId, { ...id, 'x-parse-session-token': user.sessionToken }]),
)
const each = (make) => users.map(({ objectId }) => make(sessionOf.get(objectId), objectId))
const path = (one) => `/parse/classes/Cell/${one.id}`
const list = (where) =>
  `/parse/classes/Cell?limit=50&order=-createdAt&where=${encodeURIComponent(JSON.stringify(where))}`
answer(port, {
  'session check': each((headers) => request('GET', '/parse/users/me', headers)),
  'sign in': users.map((_, at) =>
    request('POST', '/parse/login', id, { username: `user${at}`, password: 'a bench password' }),
  ),
  'get, private': rows
    .filter((one) => !one.is_public)
    .slice(0, 500)
    .map((one) => request('GET', path(one), sessionOf.get(one.owner))),
  'get, public': rows
    .filter((one) => one.is_public)
    .slice(0, 500)
    .map((one) => request('GET', path(one), id)),
  'list 50 own': each((headers, owner) => request('GET', list({ owner }), headers)),
  'list 50 visible': each((headers) => request('GET', list({}), headers)),
  create: each((headers, owner) => request('POST', '/parse/classes/Cell', headers, note(owner))),
})

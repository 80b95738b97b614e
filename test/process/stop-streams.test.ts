import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { send } from '../helpers/account-routes.ts'
import { openStream } from '../helpers/audit-streams.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

test('SIGTERM ends every audit stream, even if its client reads nothing, and the server exits', async () => {
  const { env } = await ownPostgres()
  const cwd = await space.make('streams')
  const server = await startServer(cwd, { ...env, CELLKEEP_SSE_PER_CREDENTIAL: '30' })
  onTestFinished(() => void server.signal('SIGKILL'))
  const token = (await readFile(join(cwd, '.cellkeep', 'bootstrap_token'), 'utf8')).trim()
  const account = { token, username: 'ada', password: 'a long password' }
  const { cookie } = await send(server, 'POST /bootstrap', { body: account })
  const streams = await Promise.all(
    Array.from({ length: 20 }, () => openStream(server, { cookie }, '?after=0')),
  )
  const stalled = await openStream(server, { cookie })
  stalled.pause()
  for (const stream of streams) expect(await stream.take(1)).toMatchObject([{ id: 1 }])

  server.signal('SIGTERM')
  for (const stream of streams)
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'close', data: { reason: 'shutdown' } })
  expect((await server.ended).code).toBe(0)
})

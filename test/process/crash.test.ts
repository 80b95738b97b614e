import { afterAll, expect, test } from 'vitest'
import { crashTest } from '../helpers/crash.ts'
import { gatedConfig } from '../helpers/gate.ts'
import { bootstrap, databaseOf, startServer, workspace } from '../helpers/server-process.ts'

// One working directory, so that every round also checks the writes of earlier rounds. `npm run durability` runs ten
// rounds of each kind.
const space = await workspace()
const crash = await crashTest(await space.furnished('crash'))
afterAll(() => crash.end().finally(() => space.remove()))

test('after kill -9 of the server amid writes the next start adopts its database, with every acknowledged write', async () => {
  await crash.round('server')
})

test('a server whose database is killed amid writes starts it again, and has every acknowledged write', async () => {
  await crash.round('database')
})

test('after kill -9 of both amid writes the next start recovers every acknowledged write', async () => {
  await crash.round('both')
})

test('a mutation whose database dies while its hook runs is repeated once, and no error escapes', async () => {
  const cwd = await space.furnished('hook')
  const gate = await gatedConfig(cwd)
  const server = await startServer(cwd)
  await bootstrap(server)
  const outcome = server.client.try.cell_create({ data: { gate: true } })
  await gate.entered
  process.kill((await databaseOf(cwd)) as number, 'SIGKILL')
  await server.logged('embedded database lost; starting it again')
  gate.open()
  expect(await outcome).toMatchObject({ ok: true })
  expect((await server.client.cell_list({})).cells).toHaveLength(1)
  gate.close()
  const { code, stdout } = await server.end('SIGTERM')
  expect(code).toBe(0)
  expect(stdout.filter((line) => line.includes('was not caught'))).toEqual([])
})

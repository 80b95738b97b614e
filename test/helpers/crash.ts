import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { TransportError } from '../../src/client/client.ts'
import { bootstrap, databaseOf, firstAccount, type ServerProcess, startServer } from './server-process.ts'

/** The target of `kill -9` while writes are running. */
export const victims = ['server', 'database', 'both'] as const
type Victim = (typeof victims)[number]

export type Round = { acknowledged: number; refused: number; recoveredMs: number }

const writers = 4
/** The number of acknowledged writes before the kill, and after it if the server survives. */
const writesEach = 40

const settings = { CELLKEEP_LIMIT_CELL_CREATE: 'off', CELLKEEP_LIMIT_LOGIN_IP: 'off' }

/**
 * One working directory with a server that is killed again and again. Each round writes, kills in the middle of it,
 * just starts the service again as a supervisor would, and asserts that every write acknowledged in this or an
 * earlier round is there.
 */
export async function crashTest(cwd: string): Promise<{
  round(victim: Victim): Promise<Round>
  end(): Promise<void>
}> {
  const acknowledged: string[] = []
  let server = await startServer(cwd, settings)
  await bootstrap(server)

  return {
    round: async (victim) => {
      const tally = startWriters(server, acknowledged)
      await tally.more(writesEach)
      const struck = performance.now()
      const database = await strike(server, cwd, victim)
      if (victim === 'database') {
        while ([undefined, database].includes(await databaseOf(cwd))) await delay(50)
        await tally.more(writesEach)
        tally.stop()
      } else {
        await server.ended
      }
      await tally.done
      if (victim !== 'database') {
        server = await startServer(cwd, settings)
        await server.client.account.login(firstAccount)
      }
      assert.equal((await fetch(`${server.url}/health`)).status, 200)
      const recoveredMs = performance.now() - struck
      const isAdopted = (await databaseOf(cwd)) === database
      assert.equal(isAdopted, victim === 'server', 'a living database is adopted, a dead one replaced')
      const stray = server.log().filter(({ msg }) => /was not caught|was not handled/.test(String(msg)))
      assert.deepEqual(stray, [], 'no exception escaped')
      await assertKept(server, acknowledged)
      return { acknowledged: acknowledged.length, refused: tally.refused(), recoveredMs }
    },
    end: async () => {
      assert.equal((await server.end('SIGTERM')).code, 0)
      assert.equal(await databaseOf(cwd), undefined)
    },
  }
}

/** Resolves to the process id of the killed database. */
async function strike(server: ServerProcess, cwd: string, victim: Victim): Promise<number> {
  const database = await databaseOf(cwd)
  assert.ok(database !== undefined, 'the database runs')
  if (victim !== 'server') process.kill(database, 'SIGKILL')
  if (victim !== 'database') server.signal('SIGKILL')
  return database
}

/** Clients that create cells as fast as they get replies, and continue after a 503. */
function startWriters({ client }: ServerProcess, acknowledged: string[]) {
  let refused = 0
  let stopped = false
  let isOver = false
  const checks = new Set<() => void>()
  const write = async (): Promise<void> => {
    while (!stopped) {
      const outcome = await client.try.cell_create({ data: { text: 'x'.repeat(500) } })
      // The connection was cut: the server is gone.
      if (!outcome.ok && outcome.error instanceof TransportError) return
      if (outcome.ok) acknowledged.push(outcome.result.cell.id)
      else {
        assert.equal(outcome.error.status, 503, outcome.error.reason)
        refused += 1
      }
      for (const check of checks) check()
    }
  }
  const done = Promise.all(Array.from({ length: writers }, write)).finally(() => {
    isOver = true
    for (const check of checks) check()
  })
  const wait = (what: string, is: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = () => {
        if (is()) resolve()
        else if (isOver) reject(new Error(`The writers ended before ${what}.`))
        else return
        checks.delete(check)
      }
      checks.add(check)
      check()
    })
  return {
    done,
    refused: () => refused,
    stop: () => {
      stopped = true
    },
    more: (count: number) => {
      const until = acknowledged.length + count
      return wait(`${count} more writes were acknowledged`, () => acknowledged.length >= until)
    },
  }
}

/** Every one of these cells is there. */
export async function assertKept(
  { client }: Pick<ServerProcess, 'client'>,
  ids: readonly string[],
): Promise<void> {
  for (let at = 0; at < ids.length; at += 200) {
    const asked = ids.slice(at, at + 200)
    const { cells } = await client.cell_list({ ids: asked, limit: 200 })
    const found = new Set(cells.map(({ id }) => id))
    const lost = asked.filter((id) => !found.has(id))
    assert.deepEqual(lost, [], 'every acknowledged write is there')
  }
}

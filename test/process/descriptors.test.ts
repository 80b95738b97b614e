import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

test.runIf(hasPrlimit)(
  'the log says that connections are cut, because no file descriptor is left',
  async () => {
    const server = await startServer(await space.make('short'), (await ownPostgres()).env)
    const { port, hostname } = new URL(server.url)
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
    execFileSync('prlimit', ['--pid', String(server.pid), '--nofile=100:100'])
    const sockets = Array.from({ length: 200 }, () => connect(Number(port), hostname).on('error', () => {}))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    await Promise.race(sockets.map((socket) => once(socket.resume(), 'close')))
    expect(await server.logged('no file descriptor is left; new connections are cut')).toMatchObject({
      level: 'error',
      event: 'descriptors_out',
      err: { code: 'EMFILE' },
    })
    for (const socket of sockets) socket.destroy()
    expect((await server.end('SIGTERM')).code).toBe(0)
  },
)

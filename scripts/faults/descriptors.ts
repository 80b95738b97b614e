import { execFileSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { NotRun } from '../packaging/check.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const descriptors: Fault = {
  name: 'File descriptors run out',
  how: 'the running server is left 64 (`prlimit --nofile`); 200 idle connections come, and stay for 10 s',
  run: async (cwd) => {
    const load = await startLoad(cwd)
    await load.writes(100)
    try {
      execFileSync('prlimit', ['--pid', String(load.server.pid), '--nofile=64:64'])
    } catch {
      throw new NotRun('there is no prlimit (util-linux)')
    }
    const { port, hostname } = new URL(load.server.url)
    load.strike()
    const sockets: Socket[] = []
    for (let count = 0; count < 200; count++) {
      const socket = connect(Number(port), hostname)
        .on('error', () => {})
        .resume()
      sockets.push(socket)
      // Not `once` of node:events, which rejects if the server cuts the connection.
      await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
    }
    await delay(10_000)
    const cut = sockets.filter(({ destroyed }) => destroyed).length
    for (const socket of sockets) socket.destroy()
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    const seen = `on connections they have, ${report.seen}<br>of the 200 new connections ${cut} are cut at once`
    return { ...report, seen }
  },
  note: 'With `ulimit -n 64` from the start, the embedded PostgreSQL cannot be created; the start says so, with exit code 3.',
}

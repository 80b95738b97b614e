import { execFile, fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type pg from 'pg'
import type { Target } from '../measure.ts'
import { ask, type Started } from '../processes.ts'

/** What a peer can do: complete requests by the name of the work. */
type Peer = { name: string; target: Target; requests: Record<string, string[]> }

const scripts = { 'better-auth': 'better-auth.js', 'Parse Server': 'parse-server.js' }

/** Starts the other systems, each in its own process with a database of its own on the server of the product. */
export async function startPeers(
  started: Started,
  client: pg.Client,
  { server, ...world }: { server: Target; host: string; cells: number; owners: number },
): Promise<Peer[]> {
  const dir = import.meta.dirname
  if (!existsSync(join(dir, 'node_modules'))) await promisify(execFile)('npm', ['ci'], { cwd: dir })
  const peers: Peer[] = []
  for (const [name, script] of Object.entries(scripts)) {
    const database = `peer_${peers.length}`
    await client.query(`create database ${database}`)
    const args = [JSON.stringify({ ...world, database })]
    const child = fork(join(dir, script), args, { cwd: dir, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    started.add(async () => void child.kill())
    const { port, requests } = await ask<{ port: number; requests: Peer['requests'] }>(child)
    peers.push({ name, requests, target: { port, pid: child.pid as number, databasePid: server.pid } })
  }
  return peers
}

/**
 * `npm run dev`: the server from the sources, with readable logs, started anew whenever a file of `src` or
 * `migrations` changes. Settings of the environment hold over these.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const env = { CELLKEEP_ENV: 'development', CELLKEEP_LOG_FORMAT: 'text', ...process.env }

// A group of its own: Ctrl-C in a terminal reaches only this process, and a second signal would cut the server
// before it has stopped its database. `node --watch` sends one.
const start = (): ChildProcess =>
  spawn(process.execPath, [`${root}bin/cellkeep.js`, 'start'], { stdio: 'inherit', detached: true, env })

let server = start()
let isLeaving = false
let restarting: Promise<void> | undefined

async function stop(): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  server.kill('SIGTERM')
  await once(server, 'exit')
}

/** Editors write a file in several steps, so changes are gathered for a moment. */
function restart(file: string | null): void {
  if (isLeaving || file?.endsWith('.test.ts')) return
  restarting ??= (async () => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    console.log(`\n${file ?? 'A file'} changed; starting anew\n`)
    await stop()
    restarting = undefined
    if (!isLeaving) server = start()
  })()
}

async function leave(): Promise<void> {
  isLeaving = true
  await restarting
  await stop()
  process.exit(0)
}

for (const folder of ['src', 'migrations'])
  watch(`${root}${folder}`, { recursive: true }, (_event, file) => restart(file))
process.on('SIGINT', () => void leave())
process.on('SIGTERM', () => void leave())

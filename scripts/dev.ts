/**
 * `npm run dev`: runs the server from the sources, with readable logs, and restarts it when a file in `src` or
 * `migrations` changes; beside it Vite serves the console from its sources, and reloads it. Environment variables override the settings below.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const env = { CELLKEEP_ENV: 'development', CELLKEEP_LOG_FORMAT: 'text', ...process.env }

// The server gets its own process group, so that Ctrl-C reaches only this process. Otherwise it would get two signals,
// one of them from `node --watch`, and the second one ends it before it has stopped its database.
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

/** Editors write a file in several steps, so wait until changes settle. */
function restart(file: string | null): void {
  if (isLeaving || file?.endsWith('.test.ts')) return
  restarting ??= (async () => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    console.log(`\n${file ?? 'A file'} changed; restarting\n`)
    await stop()
    restarting = undefined
    if (!isLeaving) server = start()
  })()
}

async function leave(): Promise<void> {
  isLeaving = true
  await restarting
  await pages.close()
  await stop()
  process.exit(0)
}

const vite = await import('vite')
const pages = await vite.createServer({ configFile: `${root}console/vite.config.ts`, mode: 'console' })
await pages.listen()
pages.printUrls()

for (const folder of ['src', 'migrations'])
  watch(`${root}${folder}`, { recursive: true }, (_event, file) => restart(file))
process.on('SIGINT', () => void leave())
process.on('SIGTERM', () => void leave())

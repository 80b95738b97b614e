/**
 * `npm run dev`: the server from the sources, with readable logs, started anew whenever a file of `src` or
 * `migrations` changes. Settings of the environment hold over these; the rest of the line goes to the server.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const watched = ['src', 'migrations'].map((folder) => `--watch-path=${root}${folder}`)
const server = spawn(
  process.execPath,
  [...watched, '--watch-preserve-output', `${root}bin/cellkeep.js`, 'start', ...process.argv.slice(2)],
  {
    stdio: 'inherit',
    env: { CELLKEEP_ENV: 'development', CELLKEEP_LOG_FORMAT: 'text', ...process.env },
  },
)
// Ctrl-C reaches the whole group; this process only waits for the server to stop its database.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => server.kill('SIGTERM'))
server.on('exit', (code) => {
  process.exitCode = code ?? 1
})

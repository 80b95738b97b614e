#!/usr/bin/env node
// Plain JavaScript that every Node parses, so that an old one gets a sentence instead of a syntax error.
import { existsSync } from 'node:fs'

// In the repository the sources run as they are; the published package has only dist.
const source = new URL('../src/cli/main.ts', import.meta.url)
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  const help = existsSync(source)
    ? 'In this repository, `npm ci` brings the right one and `npm start` uses it.'
    : 'Install a newer one: https://nodejs.org/en/download, or the version manager of your choice.'
  console.error(`Cellkeep needs Node.js 22.18 or newer; this is ${process.versions.node}. ${help}`)
  process.exitCode = 1
} else {
  heedSignals()
  treatObjectsAsYoung()
  const main = await import(
    existsSync(source) ? source.href : new URL('../dist/cli/main.js', import.meta.url).href
  )
  await main.run(process.argv.slice(2))
}

/**
 * Linux keeps signals that nobody handles from a process of number 1, which this is in a container: a stop while the
 * program loads would be lost. They end it until a command has handlers of its own.
 */
function heedSignals() {
  if (process.pid !== 1) return
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ])
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(code))
}

/**
 * Node lets young objects take 64 MB before it clears them away; with a bound of 4 or 8 MB a part, of which there are
 * two, nothing takes more time, and the memory stays 40 MB lower under load. While a server starts, most objects are
 * there to stay, and V8 would conclude that those made by the same lines for each request do too: it would put them
 * among the old ones, which are cleared rarely and at a cost. Only a new start can set that, which takes 40 ms and keeps
 * the process id.
 */
function treatObjectsAsYoung() {
  const bound = '--max-semi-space-size'
  const wanted = { start: [`${bound}=8`, '--no-allocation-site-pretenuring'], backup: [`${bound}=4`] }
  const given = [process.env.NODE_OPTIONS, ...process.execArgv]
  const isGiven = (option) => given.some((text) => text?.includes(option.split('=')[0].replace('--no-', '')))
  const options = (wanted[process.argv[2]] ?? []).filter((option) => !isGiven(option))
  if (options.length === 0 || !process.execve || process.platform === 'win32') return
  process.execve(
    process.execPath,
    [process.execPath, ...options, ...process.execArgv, ...process.argv.slice(1)],
    process.env,
  )
}

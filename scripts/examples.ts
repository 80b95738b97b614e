/** `npm run examples`: runs every example as a reader would, each with its own server or database. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '../src/client/client.ts'
import { startServer, workspace } from '../test/helpers/server-process.ts'
import { followTutorial, runFrameworks } from './example-projects.ts'
import { type Place, runEmbed, runPython, runStandalone } from './example-runs.ts'
import { pack } from './package-project.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const space = await workspace()
try {
  const directory = await space.make('examples')
  const place: Place = { root, node: process.execPath, directory }
  await standalone(place)
  await runEmbed(place)
  const tarball = await pack(directory)
  await followTutorial(place, tarball)
  await runFrameworks(place, tarball)
  console.log('5 passed, 0 failed')
} finally {
  await space.remove()
}

/**
 * Runs it twice: the second run signs in instead of bootstrapping, and finds the cells of the first. The Python
 * example uses the same server.
 */
async function standalone(place: Place): Promise<void> {
  const server = await startServer(place.directory)
  const tokenFile = join(place.directory, '.cellkeep', 'bootstrap_token')
  const first = await runStandalone(place, server.url, tokenFile)
  console.log(first)
  assert.match(first, /^Bootstrapped: ada/m)
  const second = await runStandalone(place, server.url, tokenFile)
  assert.match(second, /^Signed in as ada/m)
  assert.match(second, / 0 of them new/)
  const client = createClient({ url: server.url, jar: true })
  await client.account.login({ username: 'ada', password: 'correct horse battery' })
  const scope = { kind: 'full' } as const
  const { token } = await client.account_token_create({ scope, lifetime: { kind: 'ttl', days: 1 } })
  await runPython(place, server.url, token)
  assert.equal((await server.end('SIGTERM')).code, 0)
}

import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { ask, fillLog } from '../helpers/log-lines.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { entry, startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

/** More lines than the output buffer and a pipe hold. */
const requests = 20_000

/** A server whose log goes into a pipe that nobody reads yet. */
async function unreadServer(name: string) {
  const cwd = await space.make(name)
  const pipe = join(cwd, 'log')
  execFileSync('mkfifo', [pipe])
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = await open(pipe, 'w')
  const { env } = await ownPostgres()
  const child = spawn(process.execPath, [entry, 'start'], {
    cwd,
    env: { PATH: process.env.PATH, ...env, CELLKEEP_PORT: '0' },
    stdio: ['ignore', writer.fd, 'pipe'],
  }) as ChildProcessByStdio<null, null, Readable>
  await writer.close()
  onTestFinished(() => void child.kill('SIGKILL'))
  let stderr = ''
  while (!/\n\n$/.test(stderr)) stderr += (await once(child.stderr, 'data'))[0]
  const url = /listens on (http:\S+)/.exec(stderr)?.[1] as string
  return { child, url, reader }
}

test('lines that nobody reads are held up to a limit; the reader who comes back is told how many are missing', async () => {
  const { child, url, reader } = await unreadServer('returns')
  await fillLog(url, requests)
  const warned = JSON.parse(await ask(`${url}/ready`, new Agent()))
  expect(warned).toEqual({ ready: true, warnings: ['log_lines_dropped'] })

  let seen = 0
  let missing = 0
  const told = Promise.withResolvers<void>()
  createInterface({ input: new Socket({ fd: reader }) }).on('line', (text) => {
    const line = JSON.parse(text)
    if (line.path?.startsWith('/xxx')) seen += 1
    if (line.event === 'log_lines_dropped') {
      missing += line.dropped
      told.resolve()
    }
  })
  await told.promise
  expect(seen + missing).toBeGreaterThanOrEqual(requests)
  // The log also has the lines of the request to /ready and of the server itself.
  expect(seen + missing).toBeLessThan(requests + 100)
  expect(missing).toBeGreaterThan(requests / 4)
  expect(JSON.parse(await ask(`${url}/ready`, new Agent()))).toEqual({ ready: true })
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

test('SIGTERM stops a server whose log nobody reads', async () => {
  const { child, url, reader } = await unreadServer('stops')
  onTestFinished(() => closeSync(reader))
  // More than the pipe holds.
  await fillLog(url, 1000)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

test('the server keeps running when the readers of its log and messages are gone', async () => {
  const { child, url, reader } = await unreadServer('gone')
  closeSync(reader)
  child.stderr.destroy()
  // Enough that the server writes it at once.
  await fillLog(url, 500)
  expect(await ask(`${url}/health`, new Agent())).toBe('{"status":"ok"}')
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

test('nothing that a client sends controls the terminal of who reads the log', async () => {
  const server = await startServer(await space.make('controls'), (await ownPostgres()).env)
  const origin = 'https://ex\u009b31m\u0085ample.org'
  const post = request(`${server.url}/api/account/login`, { method: 'POST', headers: { origin } }).end()
  expect((await once(post, 'response'))[0].statusCode).toBe(403)
  const { stdout } = await server.end('SIGTERM')
  expect(stdout.map((line) => JSON.parse(line))).toContainEqual(expect.objectContaining({ origin }))
  expect(stdout.join('')).not.toMatch(/\p{Cc}/u)
})

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { runCellkeep, type ServerProcess, startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

/**
 * Appends what it delivers to a file. If `die` exists, it is removed and the process dies: before it appends, or after
 * it if `after` exists too.
 */
const config = `
  import { appendFileSync, existsSync, unlinkSync } from 'node:fs'
  export default {
    link_url: 'https://app.example/link',
    secret_keys: ['test-secret-test-secret-test-secret-1'],
    deliver(message) {
      const dies = existsSync('die') && (unlinkSync('die'), true)
      if (!dies || existsSync('after')) appendFileSync('sent', JSON.stringify(message) + '\\n')
      if (dies) process.kill(process.pid, 'SIGKILL')
    },
  }`

const sentIn = async (cwd: string): Promise<{ id: string; link: string }[]> =>
  (await readFile(join(cwd, 'sent'), 'utf8').catch(() => ''))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

const recover = (server: ServerProcess) =>
  fetch(`${server.url}/api/account/recover`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ identifier: 'ada' }),
  }).catch(() => undefined)

test.each([
  ['before it was delivered: it is delivered once', [], 1],
  ['after it was delivered: it is delivered again, with the same id and link', ['after'], 2],
])('a message whose process dies %s', async (name, files, times) => {
  const cwd = await space.make(name.slice(0, 5))
  for (const file of ['die', ...files]) await writeFile(join(cwd, file), '')
  await writeFile(join(cwd, 'cellkeep.config.mjs'), config)
  const { env } = await ownPostgres()
  const first = await startServer(cwd, env)
  const words = ['account', 'create', '--username', 'ada', '--email', 'ada@x.io']
  expect((await runCellkeep(cwd, words, env, 'correct horse battery\n')).code).toBe(0)
  await recover(first)
  await first.ended
  // As a minute later: the lease of the dead process has ended.
  const client = new pg.Client(env.CELLKEEP_DATABASE_URL)
  await client.connect()
  const { rowCount } = await client.query(
    `update cellkeep.message_outbox set leased_until = now() where state = 'queued' and leased_until is not null`,
  )
  await client.end()
  expect(rowCount).toBe(1)
  const second = await startServer(cwd, env)
  await expect.poll(async () => (await sentIn(cwd)).length).toBe(times)
  const sent = await sentIn(cwd)
  expect(new Set(sent.map(({ id }) => id)).size).toBe(1)
  const { link = '' } = sent.at(-1) ?? {}
  expect(link).toBe(sent[0]?.link)
  const asked = await fetch(`${second.url}/api/account/ticket`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: link.split('#ticket=')[1] }),
  })
  expect(asked.status).toBe(200)
  expect((await second.end('SIGTERM')).code).toBe(0)
})

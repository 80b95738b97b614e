import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { clientWith } from '../helpers/callers.ts'
import { runCellkeep, startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

test('a started server lets the keeper purge once a daemon token file is there', async () => {
  const cwd = await space.make('daemon')
  const path = join(cwd, 'daemon_token')
  const env = { CELLKEEP_DAEMON_TOKEN_FILE: path }
  const server = await startServer(cwd, env)
  const cellkeep = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCellkeep(
      cwd,
      [...args, '--json'],
      env,
      'a very long password\n',
    )
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout[0] as string)
  }
  await cellkeep('account', 'create', '--username', 'root', '--keeper')
  const { account } = await cellkeep('account', 'create', '--username', 'ada')
  const purge = (token: string) =>
    clientWith(server, { 'x-daemon-token': token }).try.account_purge({
      account_id: account.id,
      confirm: true,
    })
  expect(await purge('x'.repeat(43))).toMatchObject({ error: { reason: 'authentication_required' } })

  expect(await cellkeep('daemon-token', 'rotate')).toEqual({ path, previous_holds: false })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  const token = (await readFile(path, 'utf8')).trim()
  await cellkeep('daemon-token', 'rotate', '--only')
  expect(await purge(token)).toMatchObject({ error: { reason: 'authentication_required' } })
  const fresh = (await readFile(path, 'utf8')).trim()
  expect(await purge(fresh)).toEqual({ ok: true, result: { ok: true, purged: true } })
  expect(await purge(fresh)).toMatchObject({ error: { reason: 'account_not_found' } })
  const { code } = await server.end('SIGTERM')
  expect(code).toBe(0)
  expect(JSON.stringify(server.log())).not.toContain(fresh)
})

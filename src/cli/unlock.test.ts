import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { shell } from '../../test/helpers/shell.ts'
import { scenario, type TestService, testService } from '../testing/index.ts'

const password = 'a long password'
const test = await serviceForFile()

it('account unlock reaches the memory of every running node', async () => {
  const options = { database_url: test.databaseUrl, limit_login_ip: 'off' } as const
  const nodes = [await testService(options), await testService(options)]
  const [ada, bob] = [await test.account(), await test.account()]
  const login = (node: TestService, username: string, word: string) =>
    node
      .client()
      .account.login({ username, password: word })
      .then(
        () => 'ok',
        ({ reason }) => reason,
      )
  for (const node of nodes)
    for (const { username } of [ada, bob]) {
      for (let i = 0; i < 10; i++)
        expect(await login(node, username, 'a wrong password')).toBe('invalid_credentials')
      expect(await login(node, username, password)).toBe('rate_limit_exceeded')
    }
  const shared = shell({ CELLKEEP_DATABASE_URL: test.databaseUrl }, tmpdir())
  const heard = nodes.map(
    (node) =>
      new Promise<void>((resolve) =>
        node.service.app.hub.listen(({ cleared }) => {
          if (cleared) resolve()
        }),
      ),
  )
  await scenario(
    test,
    async () =>
      expect(await shared(['account', 'unlock', ada.username])).toEqual({
        code: 0,
        stdout: `${ada.username} is unlocked and can sign in again.\n`,
        stderr: '',
      }),
    { audit: [{ event_type: 'account_update', metadata: { change: 'unlock', via: 'cli' } }] },
  )
  await Promise.all(heard)
  for (const node of nodes) {
    expect(await login(node, ada.username, password)).toBe('ok')
    expect(await login(node, bob.username, password)).toBe('rate_limit_exceeded')
    await node.close()
  }
})

it('account unlock reaches the shared store, and so every node', async () => {
  const options = { database_url: test.databaseUrl, limit_store: 'postgres', limit_login_ip: 'off' } as const
  const nodes = [await testService(options), await testService(options)] as const
  const ada = await test.account()
  const login = (i: number, word: string) =>
    (nodes[i % 2] as TestService)
      .client()
      .account.login({ username: ada.username, password: word })
      .then(
        () => 'ok',
        ({ reason }) => reason,
      )
  for (let i = 0; i < 10; i++) expect(await login(i, 'a wrong password')).toBe('invalid_credentials')
  for (const i of [0, 1]) expect(await login(i, password)).toBe('rate_limit_exceeded')
  const shared = shell(
    { CELLKEEP_DATABASE_URL: test.databaseUrl, CELLKEEP_LIMIT_STORE: 'postgres' },
    tmpdir(),
  )
  await scenario(
    test,
    async () =>
      expect(await shared(['account', 'unlock', ada.username])).toMatchObject({ code: 0, stderr: '' }),
    { audit: [{ event_type: 'account_update', metadata: { change: 'unlock', via: 'cli' } }] },
  )
  for (const i of [0, 1]) expect(await login(i, password)).toBe('ok')
  for (const node of nodes) await node.close()
})

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { createLog } from '../../src/log/log.ts'
import { type TestOptions, testService } from '../../src/testing/index.ts'
import { type SendOptions, send } from './account-routes.ts'

type Options = Pick<TestOptions, 'bootstrap' | 'database_url'> & { path?: string }

/** Services with an open bootstrap, by default with their own token file; closed after the test file. */
export function bootstrapTest() {
  const ends: (() => Promise<unknown>)[] = []
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })
  const directory = async (): Promise<string> => {
    const dir = await mkdtemp(join(tmpdir(), 'ck-bootstrap-'))
    ends.push(() => rm(dir, { recursive: true, force: true }))
    return dir
  }
  const open = async ({ path: given, ...options }: Options = {}) => {
    const path = given ?? join(await directory(), 'bootstrap_token')
    const lines: string[] = []
    const test = await testService({
      bootstrap: 'live',
      bootstrap_token_path: path,
      trusted_proxies: ['127.0.0.1'],
      log: createLog('debug', { write: (line) => void lines.push(line) }),
      ...options,
    })
    ends.push(() => test.close())
    return {
      test,
      path,
      /** The log so far. */
      lines,
      token: (await readFile(path, 'utf8').catch(() => '')).trim(),
      bootstrap: (body: unknown, how: Omit<SendOptions, 'body'> = {}) =>
        send(test, 'POST /bootstrap', { body, ...how }),
    }
  }
  return { open, directory }
}

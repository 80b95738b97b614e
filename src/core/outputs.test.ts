import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { createService } from '../create-service.ts'
import { sql } from '../db/db.ts'
import { silentLog } from '../log/log.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { mutation, query } from './declare.ts'

let answer: unknown
const output = z.object({ count: z.int(), more: z.array(z.string()).optional() })
const actions = {
  read_it: query({
    doc: 'Answers what the test says.',
    auth: { account: 'none', actor: 'none' },
    output,
    handler: async () => answer as { count: number },
  }),
  write_it: mutation({
    doc: 'Writes a note and answers what the test says.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output,
    async handler(_input, { db }) {
      await db.run(sql`insert into note default values`)
      return answer as { count: number }
    },
  }),
}

async function open(options: Parameters<typeof testService>[0]) {
  const captured = capturedLog()
  const test = await testService<typeof actions>({ actions, log: captured.log, ...options })
  await test.service.app.db.run(sql`create table note (id int generated always as identity)`)
  return { test, captured, ada: await test.account() }
}
const notes = async (test: TestService<typeof actions>) =>
  (await test.service.app.db.rows(sql`select 1 from note`)).length

describe('in development', () => {
  let test: TestService<typeof actions>
  let ada: TestAccount<typeof actions>
  let captured: ReturnType<typeof capturedLog>
  beforeAll(async () => {
    ;({ test, ada, captured } = await open({}))
  })
  afterAll(() => test.close())

  it('a result that breaks its output is an internal error, and what was written is undone', async () => {
    for (const broken of [{}, null, { count: '1' }, { count: 1, more: [1] }]) {
      answer = broken
      expect(await reasonOf(test.client().read_it())).toBe('internal_error')
      expect(await reasonOf(ada.client.write_it())).toBe('internal_error')
    }
    expect(await notes(test)).toBe(0)
    answer = { count: 1 }
    expect(await test.client().read_it()).toEqual({ count: 1 })
    expect(await ada.client.write_it()).toEqual({ count: 1 })
    expect(await notes(test)).toBe(1)
  })

  it('also of a service without the option', async () => {
    answer = {}
    const { databaseUrl: database_url } = test
    const keys = { cookie_keys: ['test-key-test-key-test-key-test-key-1'] }
    const own = await createService({ env: 'development', database_url, actions, log: silentLog, ...keys })
    await expect(own.call('read_it')).rejects.toMatchObject({ data: { reason: 'internal_error' } })
    await own.close()
  })

  it('the log says which rule, and nothing of what the result held', async () => {
    answer = { count: 'a secret of the handler' }
    await reasonOf(test.client().read_it())
    expect(captured.text()).toContain('The result of read_it breaks its declared output: count: invalid_type')
    expect(captured.text()).not.toContain('a secret of the handler')
  })
})

describe('in production', () => {
  it('it is answered, logged once and counted, in the first answers and then in a sample', async () => {
    const metrics = new Registry()
    const { test, captured } = await open({ check_outputs: false, metrics })
    const found = async () => /^cellkeep_output_flaws_total (\d+)$/m.exec(await metrics.metrics())?.[1]
    expect(await found()).toBe('0')
    const ask = () => test.service.call('read_it')
    const lines = () => captured.lines().filter(({ msg }) => /breaks its declared output/.test(msg as string))
    answer = { count: 'x' }
    for (let n = 0; n < 20; n++) expect(await ask()).toEqual({ count: 'x' })
    expect(await found()).toBe('20')
    expect(lines()).toMatchObject([{ level: 'error', method: 'read_it', flaw: 'count: invalid_type' }])
    for (let n = 20; n < 2001; n++) await ask()
    expect(await found()).toBe('22')
    expect(lines()).toHaveLength(1)
    await test.close()
  })
})

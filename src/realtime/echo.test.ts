import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { Echo } from './echo.ts'

const test = await serviceForFile()

it('two questions at a time are both answered', async () => {
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  onTestFinished(() => client.end())
  const echo = new Echo('node', 'echoes')
  client.on('notification', ({ payload = '' }) => echo.hear(payload))
  await client.query('listen echoes')
  expect(await Promise.all([echo.of(client), echo.of(client)])).toEqual([
    expect.any(Number),
    expect.any(Number),
  ])
})

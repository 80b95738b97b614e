import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { nodeFindings } from '../../cli/doctor/nodes.ts'
import { createService } from '../../create-service.ts'
import { toUrl } from '../../testing/cluster.ts'

test('a start with a role that has too few connections for one node is refused with the limit', async () => {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const [role, database] = [`few_${process.pid}`, pg.escapeIdentifier(connection.database as string)]
  const operator = await open()
  await operator.query(
    `create role ${role} login connection limit 2; alter database ${database} owner to ${role}`,
  )
  onTestFinished(async () => {
    const client = await open()
    await client.query(
      `alter database ${database} owner to current_user; reassign owned by ${role} to current_user`,
    )
    await client.query(`drop owned by ${role}; drop role ${role}`)
  })
  const database_url = toUrl({ ...connection, user: role })
  const cookie_keys = ['k'.repeat(43)]
  await expect(createService({ database_url, cookie_keys })).rejects.toMatchObject({
    reason: 'connections_short',
    message: expect.stringContaining(`The role ${role} allows 2 connections`),
  })
  await operator.query(`alter role ${role} connection limit 3`)
  await using service = await createService({ database_url, cookie_keys })
  const ready = await service.fetch(new Request('http://localhost/ready'), { address: '127.0.0.1' })
  expect(await ready.json()).toEqual({ ready: true })
  await operator.query(`alter role ${role} connection limit 13`)
  await service.join()
  expect(await nodeFindings(service.app.db)).toContainEqual({
    finding: 'connections_short',
    what: `The role ${role} allows 13 connections, and the nodes may open 14.`,
    remedy: expect.stringContaining(`alter role ${role} connection limit`),
  })
})

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { type FreshDatabase, migratedDatabase } from '../../../test/fresh-database.ts'
import { takesWrites } from './admission.ts'

const readOnly = { why: 'read_only' }

async function database(): Promise<FreshDatabase> {
  const database = await migratedDatabase()
  onTestFinished(database.drop)
  return database
}

test('a session that we set read-only leads to a server that takes writes, and stays read-only', async () => {
  const client = await (await database()).open()
  await client.query('set default_transaction_read_only = on')
  await takesWrites(client)
  await expect(client.query('create table t ()')).rejects.toMatchObject({ code: '25006' })
})

test.each(['database', 'role'])(
  'a %s that is set read-only is found by a session from before',
  async (what) => {
    const { connection, open } = await database()
    const [client, operator] = [await open(), await open()]
    const whose = what === 'database' ? '' : `role ${pg.escapeIdentifier(connection.user as string)} in `
    const set = `alter ${whose}database ${pg.escapeIdentifier(connection.database as string)}`
    await operator.query(`${set} set default_transaction_read_only = on`)
    await client.query('set default_transaction_read_only = off')
    await expect(takesWrites(client)).rejects.toMatchObject(readOnly)
    await operator.query(`${set} reset default_transaction_read_only`)
    await takesWrites(client)
  },
)

test('the default of a server counts, whatever we set the session to', async () => {
  const { connection } = await database()
  const client = new pg.Client({ ...connection, options: '-c default_transaction_read_only=on' })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('set default_transaction_read_only = off')
  await expect(takesWrites(client)).rejects.toMatchObject(readOnly)
})

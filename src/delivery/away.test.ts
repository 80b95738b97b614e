import type { Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { outbox } from '../../test/helpers/outbox.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { sql } from '../db/db.ts'
import { defaultSchema } from '../db/servers/locate.ts'
import type { Message } from '../registry/messages.ts'
import { toUrl } from '../testing/cluster.ts'
import { testService } from '../testing/index.ts'

const wire = { isCut: false, open: new Set<Socket>() }
const cut = (is: boolean): void => {
  wire.isCut = is
  if (is) for (const one of wire.open) one.destroy()
}
/** Delivers nothing, and reaches the database whatever happens. */
const other = await testService()
const proxy = await postgresProxy({ connectionString: other.databaseUrl }, (near, far) => {
  if (wire.isCut) return void near.destroy()
  wire.open.add(near.on('close', () => wire.open.delete(near)))
  near.pipe(far)
  far.pipe(near)
})
const sent: Message[] = []
const { log, lines } = capturedLog()
const test = await testService({
  database_url: toUrl({ ...proxy.connection, schema: defaultSchema }),
  database_wait_ms: 0,
  log,
  deliver: (message: Message) => {
    sent.push(message)
    cut(true)
  },
})
afterAll(async () => {
  cut(false)
  await test.close()
  await proxy.close()
  await other.close()
})

it('a message that was sent while the database is away is recorded when it is back, and not sent again', async () => {
  const { username } = await test.account({ email: 'ada@x.io' })
  await send(test, 'POST /recover', { body: { identifier: username } })
  await expect.poll(() => lines().some(({ event }) => event === 'breaker_open')).toBe(true)
  cut(false)
  await expect.poll(() => outbox(other)).toMatchObject([{ state: 'sent', attempts: 1 }])
  expect(sent).toHaveLength(1)
})

it('so is one that was sent while the disk of the database is full', async () => {
  const told: Message[] = []
  await using full = await testService({ deliver: (message: Message) => void told.push(message) })
  const { db } = full.service.app
  await db.run(sql`create sequence try`)
  await db.run(sql`
    create function refuse() returns trigger language plpgsql as
      $$ begin perform nextval('try'); raise 'no space left' using errcode = '53100'; end $$`)
  await db.run(sql`
    create trigger refuse before update on message_outbox for each row
      when (new.state = 'sent') execute function refuse()`)
  const { username } = await full.account({ email: 'ada@x.io' })
  await send(full, 'POST /recover', { body: { identifier: username } })
  const tries = async () => (await db.one<{ n: number }>(sql`select last_value::int as n from try`)).n
  await expect.poll(tries).toBeGreaterThan(1)
  await db.run(sql`drop trigger refuse on message_outbox`)
  await expect.poll(() => outbox(full)).toMatchObject([{ state: 'sent', attempts: 1 }])
  expect(told).toHaveLength(1)
})

import { expect, it } from 'vitest'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { messageFindings } from './messages.ts'

const test = await serviceForFile({ deliver: () => {} })
const { app, operations } = test.service
const found = async (config = app.config) =>
  (await messageFindings(app.db, config)).map(({ finding }) => finding)

it('finds failed and waiting messages, invites without a link, and secrets under old keys', async () => {
  const ada = await test.account()
  expect(await found()).toEqual([])
  await app.db.run(sql`
    insert into message_outbox (purpose, account_id, to_address, locale, expires_at, state, error, finished_at,
      created_at, next_attempt_at)
    values ('test', null, null, 'en', now(), 'failed', 'refused', now(), now(), null),
      ('test', null, null, 'en', now(), 'failed', 'expired', now(), now(), null),
      ('test', null, 'a@x.io', 'en', now() + interval '1 day', 'queued', null, null, now() - interval '2 hours',
        now() + interval '1 hour')`)
  await app.db.run(sql`insert into invite (username) values ('somebody')`)
  await app.db.run(sql`
    insert into account_totp (account_id, secret_sealed) values (${ada.id}::uuid, 'v1.00000000.x.y')`)
  const all = ['messages_failed', 'messages_waiting', 'invites_without_link', 'secrets_under_old_keys']
  expect(await found()).toEqual(all)
  expect(await found({ ...app.config, invite_claim: 'match' })).not.toContain('invites_without_link')
  const { id } = (await operations.listInvites()).invites[0] as { id: string }
  await operations.sendInvite({ invite_id: id, reveal: true }, { via: 'testing' })
  expect(await found()).toEqual(all.filter((one) => one !== 'invites_without_link'))
})

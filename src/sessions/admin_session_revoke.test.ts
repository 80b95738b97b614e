import { expect, it } from 'vitest'
import { sessionIn } from '../../test/helpers/account-routes.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()
const admin = await test.account({ roles: ['admin'] })
const revoke = (session_id: string) => admin.client.admin_session_revoke({ session_id })

it('ends one session of any account at once and leaves its others; the log says whose it was', async () => {
  const ada = await test.account()
  const other = await test.sessions.create(ada.id)
  const session_id = sessionIn(ada.cookie)
  const answer = await scenario(test, () => revoke(session_id), {
    audit: [
      {
        event_type: 'session_revoke',
        actor_id: admin.actor_id,
        account_id: admin.id,
        target_account_id: ada.id,
        target_actor_id: null,
        metadata: { session_id, credential_type: 'session' },
      },
    ],
  })
  expect(answer).toEqual({ ok: true, revoked: true })
  expect(await reasonOf(ada.client.account_verify())).toBe('authentication_required')
  expect((await other.client.account_verify()).id).toBe(ada.id)
})

it('answers false for an ended, expired or unknown session, and writes nothing', async () => {
  const ada = await test.account()
  const expired = sessionIn(ada.cookie)
  await test.service.app.db.run(sql`
    update auth_session set expires_at = date_trunc('milliseconds', now()) where id = ${expired}`)
  for (const session_id of [expired, 'a'.repeat(64)])
    expect(await scenario(test, () => revoke(session_id))).toEqual({ ok: true, revoked: false })
  for (const session_id of ['', 'A'.repeat(64), 'a'.repeat(63)])
    expect(await reasonOf(revoke(session_id))).toBe('invalid_params')
})

it('is for admins alone', async () => {
  const [ada, bob] = [await test.account(), await test.account()]
  const session_id = sessionIn(ada.cookie)
  expect(await reasonOf(bob.client.admin_session_revoke({ session_id }))).toBe('insufficient_permissions')
  expect((await ada.client.account_verify()).id).toBe(ada.id)
})

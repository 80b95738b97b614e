import { describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({
  roles: [{ name: 'editor', grant_paths: ['admin'] }],
  scope_kinds: [{ name: 'team' }],
})

const status = (cookie?: string, query = '') => send(test, `GET /status${query}`, { cookie })
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('/status of a signed-in account', () => {
  it('shows account, actor and active grants with exactly their keys, and writes nothing', async () => {
    const ada = await test.account({ username: 'ada_l', email: 'Ada@L.example' })
    const scope_id = '11111111-1111-1111-1111-111111111111'
    const global = await test.roleGrant({ actor_id: ada.actor_id, role: 'admin', granted_by: ada.actor_id })
    const scoped = await test.roleGrant({
      actor_id: ada.actor_id,
      role: 'editor',
      scope_kind: 'team',
      scope_id,
      expires_at: '2999-01-02T03:04:05.678Z',
    })
    const reply = await scenario(test, () => status(ada.cookie))
    expect(reply.json).toEqual({
      account: {
        id: ada.id,
        username: 'ada_l',
        email: 'Ada@L.example',
        email_verified: false,
        created_at: timestamp,
      },
      actor: { id: ada.actor_id, name: 'ada_l' },
      role_grants: [
        {
          id: global.role_grant_id,
          actor_id: ada.actor_id,
          role: 'admin',
          scope_kind: null,
          scope_id: null,
          created_at: timestamp,
          expires_at: null,
          granted_by: ada.actor_id,
        },
        {
          id: scoped.role_grant_id,
          actor_id: ada.actor_id,
          role: 'editor',
          scope_kind: 'team',
          scope_id,
          created_at: timestamp,
          expires_at: '2999-01-02T03:04:05.678Z',
          granted_by: null,
        },
      ],
    })
    expect(reply.json?.account).toEqual(await ada.client.account_verify())
  })

  it('leaves out grants that are revoked, closed or expired', async () => {
    const ada = await test.account()
    const { db } = test.service.app
    await db.run(sql`
      insert into role_grant (actor_id, role, expires_at, revoked_at, closed_at)
      values (${ada.actor_id}::uuid, 'admin', null, now(), null),
        (${ada.actor_id}::uuid, 'editor', now() - interval '1 hour', null, now()),
        (${ada.actor_id}::uuid, 'editor', now(), null, null)`)
    expect((await status(ada.cookie)).json?.role_grants).toEqual([])
    const kept = await test.roleGrant({ actor_id: ada.actor_id, role: 'editor' })
    expect((await status(ada.cookie)).json?.role_grants).toMatchObject([{ id: kept.role_grant_id }])
  })

  it('selects among several actors by `acting`, in either case; anything else is no actor and still 200', async () => {
    const [ada, bob] = [await test.account({ roles: ['admin'] }), await test.account()]
    const second = await test.actor(ada.id, 'second')
    const removed = await test.actor(ada.id, 'removed')
    await test.roleGrant({ actor_id: second, role: 'editor' })
    await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    const seen = async (query: string) => {
      const { status: code, json } = await status(ada.cookie, query)
      const { actor, role_grants } = json as { actor: { id: string } | null; role_grants: { role: string }[] }
      return [code, actor?.id ?? null, ...role_grants.map(({ role }) => role)]
    }
    expect(await seen(`?acting=${ada.actor_id}`)).toEqual([200, ada.actor_id, 'admin'])
    expect(await seen(`?acting=${second.toUpperCase()}&more=1`)).toEqual([200, second, 'editor'])
    const none = [
      '',
      `?acting=${bob.actor_id}`,
      `?acting=${removed}`,
      '?acting=',
      '?acting=null',
      '?acting=%00',
    ]
    for (const query of none) expect([query, await seen(query)]).toEqual([query, [200, null]])
  })

  it('shows the only live actor, and none where `acting` names another one', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'second')
    await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${ada.actor_id}::uuid`)
    expect((await status(ada.cookie)).json).toMatchObject({ actor: { id: second, name: 'second' } })
    expect((await status(ada.cookie, `?acting=${ada.actor_id}`)).json).toMatchObject({
      actor: null,
      role_grants: [],
    })
    await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${second}::uuid`)
    expect((await status(ada.cookie)).json).toMatchObject({
      account: { id: ada.id },
      actor: null,
      role_grants: [],
    })
  })

  it('answers HEAD with the status and headers of GET', async () => {
    const ada = await test.account()
    const [get, head] = [await status(ada.cookie), await send(test, 'HEAD /status', { cookie: ada.cookie })]
    expect(head.bare).toBe(get.bare.slice(0, -get.text.length))
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.text)))
  })
})

describe('/status without a credential', () => {
  it('is 401 for no cookie, a dead session and a deleted account alike, with no hint where bootstrap is off', async () => {
    const [dead, deleted] = [await test.account(), await test.account()]
    await dead.client.account_session_revoke_all()
    await test.service.app.db.run(sql`update account set deleted_at = now() where id = ${deleted.id}::uuid`)
    const anonymous = await status()
    expect([anonymous.status, anonymous.text]).toEqual([401, '{"error":"authentication_required"}'])
    for (const query of ['', `?acting=${dead.actor_id}`, '?acting=x'])
      for (const { cookie } of [dead, deleted])
        expect((await status(cookie, query)).bare).toBe(anonymous.bare)
  })
})

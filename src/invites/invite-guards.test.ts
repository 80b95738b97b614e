import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ app_settings: true })
const admin = await test.account({ roles: ['admin'] })

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))

describe('who is no global admin', () => {
  const calls = {
    invite_create: (one: TestAccount) => one.client.invite_create({ username: 'nobody' }),
    invite_list: (one: TestAccount) => one.client.invite_list(),
    invite_delete: (one: TestAccount) => one.client.invite_delete({ invite_id: one.id }),
    app_settings_get: (one: TestAccount) => one.client.app_settings_get(),
    app_settings_update: (one: TestAccount) => one.client.app_settings_update({ open_signup: true }),
  }
  const methods = Object.entries(calls)

  it.each(methods)(
    'is refused %s without a role, with one that is scoped, expired or revoked',
    async (_name, call) => {
      const ada = await test.account()
      const refused = { reason: 'insufficient_permissions', data: { required_roles: ['admin'] } }
      await expect(call(ada)).rejects.toMatchObject(refused)
      const { actor_id } = ada
      for (const column of [
        sql`scope_kind, scope_id) values (${actor_id}, 'admin', 'place', ${actor_id})`,
        sql`expires_at) values (${actor_id}, 'admin', now())`,
        sql`revoked_at) values (${actor_id}, 'admin', now())`,
      ]) {
        await run`delete from role_grant where actor_id = ${actor_id}`
        await run`insert into role_grant (actor_id, role, ${column}`
        await expect(call(ada)).rejects.toMatchObject(refused)
      }
    },
  )

  it.each(methods)('is refused %s without a credential', async (_name, call) => {
    await expect(call({ id: admin.id, client: test.client() } as TestAccount)).rejects.toMatchObject({
      reason: 'authentication_required',
    })
  })
})

it.each([
  ['an invite for nobody', 'invite_identifier', sql`insert into invite (expires_at) values (now())`],
  ['an e-mail without its key', 'invite_email_folded', sql`insert into invite (email) values ('a@b.c')`],
  ['a mixed-case username', 'invite_username_lower', sql`insert into invite (username) values ('Abc')`],
  [
    'a claimant without a claim',
    'invite_claimant_claimed',
    sql`insert into invite (username, claimed_by) select 'claimed', id from account limit 1`,
  ],
  [
    'two open invites of one e-mail',
    'invite_open_email',
    sql`insert into invite (email, email_key) values ('A@b.c', 'a@b.c'), ('a@b.c', 'a@b.c')`,
  ],
  [
    'two open invites of one username',
    'invite_open_username',
    sql`insert into invite (username) values ('same'), ('same')`,
  ],
  ['a second settings row', 'app_settings_single', sql`insert into app_settings (id) values (2)`],
  ['the settings row again', 'app_settings_pkey', sql`insert into app_settings (id) values (1)`],
])('the database refuses %s', async (_what, constraint, statement) => {
  await expect(test.service.app.db.run(statement)).rejects.toMatchObject({ constraint })
})

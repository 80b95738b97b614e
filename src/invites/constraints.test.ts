import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const test = await serviceForFile()
await test.account()

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

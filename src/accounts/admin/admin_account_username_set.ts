import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import { account, operation } from '../../core/operation.ts'
import { refusal } from '../../errors.ts'
import { freshAdmin, lockTarget } from '../../sign-in/privileged.ts'
import { issue } from '../../wire/issues.ts'
import { Uuid } from '../../wire/types.ts'
import { Username } from '../formats.ts'
import { lockLiveAccount } from '../locks.ts'
import { rename } from '../usernames.ts'

export const admin_account_username_set = mutation({
  doc: 'Give an account that holds neither admin nor keeper another username. The old one stays reserved to it.',
  auth: freshAdmin,
  event: 'account_update',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  enabled: ({ username_change }) => username_change !== 'off',
  input: z.strictObject({ account_id: Uuid, username: Username }),
  output: z.object({ ok: z.literal(true), changed: z.boolean() }),
  errors: ['authentication_required', 'account_not_found', 'privileged_target', 'username_taken'],
  async handler({ account_id, username }, { app, account, credential, actor, ...work }) {
    const target = await lockTarget(app, work.db, 'account_update', account_id, {
      account,
      credential,
      actor,
    })
    const changed = await rename(app, work, target, username, { by: actor.id })
    return { ok: true as const, changed }
  },
})

export const setUsername = operation({
  doc: 'Give an account another username. The old one stays reserved to it.',
  input: z.strictObject({ account_id: Uuid, username: Username }),
  event: 'account_update',
  errors: ['account_not_found', 'username_taken'],
  refine(input, { app }) {
    if (app.config.username_change !== 'off') return input
    throw refusal('invalid_params', {
      issues: [issue(['username'], 'custom', 'The setting `username_change` is `off`: usernames stay.')],
    })
  },
  async handler({ account_id, username }, { app, by, detail: { via }, fail, ...work }) {
    const locked = await lockLiveAccount(work.db, account_id, fail)
    return { changed: await rename(app, work, locked, username, { by, via }) }
  },
  command: {
    name: 'account set-username',
    args: { account_id: account, username: 'NAME' },
    details: 'Sessions and tokens stay valid; the next login takes the new name.',
    done: ({ username }) => ({ username }),
    phrase: ({ changed }, { who, username }) =>
      changed ? `${who} is now ${username}.` : `${who} already has this username.`,
  },
})

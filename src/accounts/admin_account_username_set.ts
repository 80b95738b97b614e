import { z } from 'zod'
import { account, operation } from '../core/operation.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import { Username } from './formats.ts'
import { lockLiveAccount } from './locks.ts'
import { rename } from './usernames.ts'

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
    details: 'Sessions and tokens go on; the next login takes the new name.',
    done: ({ username }) => ({ username }),
    phrase: ({ changed }, { who, username }) =>
      changed ? `${who} is ${username} now.` : `${who} has this username already.`,
  },
})

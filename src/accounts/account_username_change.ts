import { z } from 'zod'
import { mutation } from '../core/declare.ts'
import { Username } from './formats.ts'
import { lockWithFreshSession } from './locks.ts'
import { rename } from './usernames.ts'

export const account_username_change = mutation({
  doc: 'Change the username of the caller’s account. The old one stays reserved to it. `changed` is false if the account already has this username.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'account_update',
  rate_limit: 'account',
  rate_limit_group: 'rename',
  enabled: ({ username_change }) => username_change === 'self',
  input: z.strictObject({ username: Username }),
  output: z.object({ ok: z.literal(true), changed: z.boolean() }),
  errors: ['username_taken', 'account_vanished', 'authentication_required'],
  async handler({ username }, { app, account, credential, fail, ...work }) {
    const locked = await lockWithFreshSession(app, work.db, { account, credential })
    const changed = await rename(app, work, locked, username, { by: null })
    return { ok: true as const, changed }
  },
})

import { z } from 'zod'
import { type EndedForEveryone, endForEveryone } from '../accounts/everyone.ts'
import { SessionId } from '../accounts/formats.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { openPage, pageInput } from '../core/page.ts'
import { Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { readSessions } from './admin_session_list.ts'
import { endSessions } from './admin_session_revoke_all.ts'

/** Sessions by operator commands and library calls (contract 2, section 19). */

const PageInput = z.strictObject({ account_id: Uuid.nullish(), ...pageInput() })

/** One page of unexpired sessions, newest first, of one account or of all. */
export async function listSessions(app: App, input: z.input<typeof PageInput> = {}) {
  const { account_id = null, ...wanted } = parseInput(PageInput, input)
  const page = openPage(app, 'admin_session_list', { actor: null, account_id }, wanted)
  return await readSessions(app, app.db, { account_id, page })
}

const OneInput = z.strictObject({ session_id: SessionId })

/** Ends one session, whosever it is; `revoked: false` for an unknown or expired one. */
export async function revokeSession(
  app: App,
  input: z.input<typeof OneInput>,
  operator: Operator,
): Promise<{ revoked: boolean }> {
  const { session_id } = parseInput(OneInput, input)
  return await operate(app, 'session_revoke', operator, async ({ db, audit, detail }) => {
    const ended = await db.first<{ account_id: string }>(sql`
      delete from auth_session where id = ${session_id} and expires_at > now() returning account_id`)
    if (ended) audit('session_revoke', { session_id, ...detail }, { target_account_id: ended.account_id })
    return { revoked: ended !== undefined }
  })
}

const AllInput = z.strictObject({ account_id: Uuid })

/** Ends every session of an account. Refuses with `account_not_found`. */
export async function revokeSessions(
  app: App,
  input: z.input<typeof AllInput>,
  operator: Operator,
): Promise<{ count: number }> {
  const { account_id } = parseInput(AllInput, input)
  return await operate(app, 'session_revoke_all', operator, async ({ db, audit, detail }) => ({
    count: await endSessions(db, audit, account_id, detail),
  }))
}

/** Ends every session of every account that existed when the call began. */
export const revokeEverySession = (
  app: App,
  _input: Record<never, never>,
  operator: Operator,
): Promise<EndedForEveryone> =>
  endForEveryone(
    app,
    'session_revoke_all',
    { table: sql`auth_session`, live: sql`expires_at > now()` },
    operator,
  )

import type { z } from 'zod'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { openPage } from '../core/page.ts'
import { InviteInput, insertInvite, toNewInvite } from './invite_create.ts'
import { InviteDeleteInput, removeInvite } from './invite_delete.ts'
import { InvitePageInput, readInvites } from './invite_list.ts'
import type { Invite } from './invites.ts'

/**
 * Invites by operator commands and library calls (contract 2, section 19), with the input, refusals and
 * audit rows of the methods. They reject with `ServiceError`.
 */

export async function createInvite(
  app: App,
  input: z.input<typeof InviteInput>,
  operator: Operator,
): Promise<Invite> {
  const invite = toNewInvite(parseInput(InviteInput, input))
  return await operate(app, 'invite_create', operator, ({ db, audit, detail: { via } }) =>
    insertInvite(db, audit, { ...invite, created_by: operator.actor_id ?? null }, { via }),
  )
}

/** One page, newest first; `next_cursor` asks for the page behind it. */
export async function listInvites(app: App, input: z.input<typeof InvitePageInput> = {}) {
  const page = openPage(app, 'invite_list', { actor: null }, parseInput(InvitePageInput, input))
  return await readInvites(app, app.db, page)
}

export async function deleteInvite(
  app: App,
  input: z.input<typeof InviteDeleteInput>,
  operator: Operator,
): Promise<void> {
  const { invite_id } = parseInput(InviteDeleteInput, input)
  await operate(app, 'invite_delete', operator, ({ db, audit, detail: { via } }) =>
    removeInvite(db, audit, invite_id, { via }),
  )
}

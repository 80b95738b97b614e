import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import { operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Invite, inviteColumns } from './invites.ts'

/** An invite with the usernames behind its ids; null if that account was purged. */
const InviteEntry = Invite.extend({
  created_by_username: z.string().nullable(),
  claimed_by_username: z.string().nullable(),
})
type InviteEntry = z.output<typeof InviteEntry>

export const invite_list = query({
  doc: 'All invites, newest first. Claimed ones stay for good, expired ones until they are deleted or replaced.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject(pageInput()),
  output: z.object({ invites: z.array(InviteEntry), next_cursor: z.string().nullable() }),
  refine: (input, { app, actor }) => openPage(app, 'invite_list', { actor: actor.id }, input),
  handler: (page, { app, db }) => readInvites(app, db, page),
})

export const listInvites = operation({
  doc: 'List all invites, newest first, and who claimed them.',
  input: z.strictObject(pageInput()),
  handler: (wanted, { app }) =>
    readInvites(app, app.db, openPage(app, 'invite_list', { actor: null }, wanted)),
  command: {
    name: 'invite list',
    table: {
      columns: {
        INVITE: 'id',
        EMAIL: 'email',
        USERNAME: 'username',
        EXPIRES: ({ expires_at }) => expires_at ?? 'never',
        'CREATED BY': 'created_by_username',
        CLAIMED: ({ claimed_at, claimed_by_username }) =>
          claimed_at && `${claimed_at} by ${claimed_by_username ?? 'a purged account'}`,
      },
      none: 'Nobody is invited.',
    },
  },
})

async function readInvites(
  app: App,
  db: Pick<Queryable, 'rows'>,
  page: Page,
): Promise<{ invites: InviteEntry[]; next_cursor: string | null }> {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'uuid' }, 'desc')
  // Limit the page in index order before looking up the names.
  const entries = await db.rows<InviteEntry>(sql`
    select ${inviteColumns}, inviter.username as created_by_username, claimant.username as claimed_by_username
    from (select * from invite where ${beyond} ${inOrder} ${limited}) i
    left join actor on actor.id = i.created_by
    left join account inviter on inviter.id = actor.account_id
    left join account claimant on claimant.id = i.claimed_by
    order by i.created_at desc, i.id desc`)
  const { rows, next_cursor } = closePage(app, page, entries, ({ created_at, id }) => [created_at, id])
  return { invites: rows, next_cursor }
}

import { group, subcommand } from './command.ts'
import { pagesOf } from './output.ts'
import { cli, withService } from './with-service.ts'

const create = subcommand('invite', {
  name: 'create',
  usage: '[--email ADDRESS] [--username NAME] [--expires-at TIME]',
  summary: 'Invite by e-mail, username or both: who signs up with exactly these may.',
  details: 'TIME is like 2030-01-31T12:00:00Z; without one the invite stays until it is claimed or deleted.',
  options: {
    email: { type: 'string' },
    username: { type: 'string' },
    'expires-at': { type: 'string' },
  },
  run: ({ options: { email, username, 'expires-at': expires_at }, out, io }) =>
    withService(io, async ({ operations }) => {
      const made = await operations.createInvite({ email, username, expires_at }, cli)
      out.result(made, {
        invite: made.id,
        email: made.email,
        username: made.username,
        expires: made.expires_at,
      })
    }),
})

const list = subcommand('invite', {
  name: 'list',
  summary: 'All invites, newest first, and who claimed them.',
  run: ({ out, io }) =>
    withService(io, async ({ operations }) => {
      const pages = pagesOf(async (cursor) => {
        const page = await operations.listInvites({ limit: 200, cursor })
        return { rows: page.invites, next_cursor: page.next_cursor }
      })
      type Row = Awaited<ReturnType<typeof operations.listInvites>>['invites'][number]
      await out.table<Row>(
        pages,
        {
          INVITE: ({ id }) => id,
          EMAIL: ({ email }) => email,
          USERNAME: ({ username }) => username,
          EXPIRES: ({ expires_at }) => expires_at ?? 'never',
          'CREATED BY': ({ created_by_username }) => created_by_username,
          CLAIMED: ({ claimed_at, claimed_by_username }) =>
            claimed_at === null ? null : `${claimed_at} by ${claimed_by_username ?? 'a purged account'}`,
        },
        'Nobody is invited.',
      )
    }),
})

const remove = subcommand('invite', {
  name: 'delete',
  usage: 'INVITE',
  args: 1,
  summary: 'Delete an invite that nobody has claimed.',
  run: ({ args: [invite_id = ''], out, io }) =>
    withService(io, async ({ operations }) => {
      await operations.deleteInvite({ invite_id }, cli)
      out.result({ invite_id, deleted: true }, 'The invite is deleted.')
    }),
})

export const invite = group({
  name: 'invite',
  summary: 'Invite people, who then sign up by themselves.',
  details:
    'Nothing is sent and there is no code: tell the person to sign up with the invited e-mail or username.\n\nExample:\n  cellkeep invite create --email grace@example.org',
  commands: [create, list, remove],
})

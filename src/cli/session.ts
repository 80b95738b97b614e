import { accountIdOf } from './choose.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { pagesOf } from './output.ts'
import { cli, withService } from './with-service.ts'

const list = subcommand('session', {
  name: 'list',
  usage: '[REF]',
  args: [0, 1],
  summary: 'The unexpired sessions of an account, or of all, newest first.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const account_id = await accountIdOf(service, args[0])
      const pages = pagesOf(async (cursor) => {
        const page = await service.operations.listSessions({ account_id, limit: 200, cursor })
        return { rows: page.sessions, next_cursor: page.next_cursor }
      })
      const columns = {
        SESSION: ({ id }: { id: string }) => id,
        USERNAME: ({ username }: { username: string }) => username,
        CREATED: ({ created_at }: { created_at: string }) => created_at,
        EXPIRES: ({ expires_at }: { expires_at: string }) => expires_at,
      }
      await out.table(pages, columns, 'Nobody is signed in.')
    }),
})

const revoke = subcommand('session', {
  name: 'revoke',
  usage: 'SESSION',
  args: 1,
  summary: 'End one session by its id.',
  run: ({ args: [session_id = ''], out, io }) =>
    withService(io, async ({ operations }) => {
      const { revoked } = await operations.revokeSession({ session_id }, cli)
      out.result({ session_id, revoked }, revoked ? 'The session ended.' : 'There is no such session.')
    }),
})

const revokeAll = subcommand('session', {
  name: 'revoke-all',
  usage: '(REF | --everyone)',
  args: [0, 1],
  summary: 'End every session of an account, or of everyone; they have to sign in again.',
  options: { everyone: { type: 'boolean' } },
  run: async ({ args: [ref], options: { everyone = false }, out, io }) => {
    if ((ref === undefined) !== everyone) throw new WrongUsage('Name an account, or say --everyone.')
    await withService(io, async (service) => {
      const account_id = await accountIdOf(service, ref)
      if (account_id === null) {
        const ended = await service.operations.revokeEverySession({}, cli)
        out.result(ended, `${ended.count} sessions of ${ended.accounts} accounts ended.`)
        return
      }
      const { count } = await service.operations.revokeSessions({ account_id }, cli)
      out.result({ account_id, count }, `${count} sessions ended.`)
    })
  },
})

export const session = group({
  name: 'session',
  summary: 'Who is signed in; end sessions.',
  details:
    'REF is an account by its id, username or e-mail. A session that ended is refused at its next request, on\nevery server.\n\nExamples:\n  cellkeep session list ada\n  cellkeep session revoke-all ada',
  commands: [list, revoke, revokeAll],
})

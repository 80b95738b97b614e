import type { AdminToken } from '../tokens/operations.ts'
import { accountIdOf } from './choose.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { type Columns, pagesOf } from './output.ts'
import { cli, withService } from './with-service.ts'

const columns: Columns<AdminToken> = {
  TOKEN: ({ id }) => id,
  USERNAME: ({ username }) => username,
  NAME: ({ name }) => name,
  SCOPE: ({ scope }) => scope,
  EXPIRES: ({ expires_at }) => expires_at ?? 'never',
  'LAST USED': ({ last_used_at }) => last_used_at,
  FROM: ({ last_used_ip }) => last_used_ip,
}

const list = subcommand('token', {
  name: 'list',
  usage: '[REF]',
  args: [0, 1],
  summary: 'The API tokens of an account, or of all, newest first. Secrets are stored nowhere.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const account_id = await accountIdOf(service, args[0])
      const pages = pagesOf(async (cursor) => {
        const page = await service.operations.listTokens({ account_id, limit: 200, cursor })
        return { rows: page.tokens, next_cursor: page.next_cursor }
      })
      await out.table(pages, columns, 'There is no token.')
    }),
})

const revoke = subcommand('token', {
  name: 'revoke',
  usage: 'TOKEN',
  args: 1,
  summary: 'End one token by its id (tok_…).',
  run: ({ args: [token_id = ''], out, io }) =>
    withService(io, async ({ operations }) => {
      const { revoked } = await operations.revokeToken({ token_id }, cli)
      out.result({ token_id, revoked }, revoked ? 'The token ended.' : 'There is no such token.')
    }),
})

const revokeAll = subcommand('token', {
  name: 'revoke-all',
  usage: '(REF | --everyone)',
  args: [0, 1],
  summary: 'End every token of an account, or of everyone.',
  options: { everyone: { type: 'boolean' } },
  run: async ({ args: [ref], options: { everyone = false }, out, io }) => {
    if ((ref === undefined) !== everyone) throw new WrongUsage('Name an account, or say --everyone.')
    await withService(io, async (service) => {
      const account_id = await accountIdOf(service, ref)
      if (account_id === null) {
        const ended = await service.operations.revokeEveryToken({}, cli)
        out.result(ended, `${ended.count} tokens of ${ended.accounts} accounts ended.`)
        return
      }
      const { count } = await service.operations.revokeTokens({ account_id }, cli)
      out.result({ account_id, count }, `${count} tokens ended.`)
    })
  },
})

export const token = group({
  name: 'token',
  summary: 'The API tokens of scripts; end them.',
  details:
    'REF is an account by its id, username or e-mail. Tokens are made by their owners (account_token_create), so\nthat nobody else ever sees a secret.\n\nExamples:\n  cellkeep token list ada\n  cellkeep token revoke tok_x3Ff0aQ_9Zk2',
  commands: [list, revoke, revokeAll],
})

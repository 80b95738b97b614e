import type { Config } from '../config.ts'
import { StartError } from '../errors.ts'
import { accountColumns, describeAccount } from './account-view.ts'
import { accountOf } from './choose.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { pagesOf } from './output.ts'
import { askPassword } from './password.ts'
import { cli, withService } from './with-service.ts'

const create = subcommand('account', {
  name: 'create',
  usage: '--username NAME [--email ADDRESS] [--actor-name NAME] [--keeper]',
  summary: 'Make an account with one actor. The password is asked for, or read from standard input.',
  details:
    'It holds no role; `cellkeep role assign` gives it one. With --keeper it becomes the keeper and first\nadmin instead of whoever would use the bootstrap token, which then is void.',
  options: {
    username: { type: 'string' },
    email: { type: 'string' },
    'actor-name': { type: 'string' },
    keeper: { type: 'boolean' },
  },
  run: async ({ options, out, io }) => {
    const { username, email = null, 'actor-name': actor_name = null, keeper = false } = options
    if (username === undefined) throw new WrongUsage('Say which --username it gets.')
    await withService(io, async ({ operations }) => {
      const password = await askPassword(io, username)
      const made = await operations.createAccount({ username, email, actor_name, keeper, password }, cli)
      out.result(made, { account: made.account.id, username: made.account.username, actor: made.actor.id })
    })
  },
})

const list = subcommand('account', {
  name: 'list',
  usage: '[--deleted]',
  summary: 'All accounts by age, with their actors’ roles; --deleted adds the deleted ones.',
  options: { deleted: { type: 'boolean' } },
  run: ({ options, out, io }) =>
    withService(io, async ({ operations }) => {
      const pages = pagesOf(async (cursor) => {
        const page = await operations.listAccounts({
          include_deleted: options.deleted === true,
          limit: 200,
          cursor,
        })
        return { rows: page.accounts, next_cursor: page.next_cursor }
      })
      await out.table(pages, accountColumns, 'There is no account yet.')
    }),
})

const show = subcommand('account', {
  name: 'show',
  usage: 'REF',
  args: 1,
  summary: 'One account with its actors, their roles and the offers that wait for it.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const entry = await accountOf(service, args[0])
      out.result(entry, describeAccount(entry))
    }),
})

const setPassword = subcommand('account', {
  name: 'set-password',
  usage: 'REF',
  args: 1,
  summary: 'Set a new password; every session and token of the account ends.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      const password = await askPassword(io, account.username)
      const ended = await service.operations.setPassword({ account_id: account.id, password }, cli)
      out.result(
        { account_id: account.id, ...ended },
        `${account.username} has a new password; ${ended.sessions_revoked} sessions and ${ended.tokens_revoked} tokens ended.`,
      )
    }),
})

const setEmail = subcommand('account', {
  name: 'set-email',
  usage: 'REF (ADDRESS | --none)',
  args: [1, 2],
  summary: 'Set another e-mail, which counts as unverified, or none.',
  options: { none: { type: 'boolean' } },
  run: async ({ args: [ref, address], options, out, io }) => {
    if ((address === undefined) !== (options.none === true))
      throw new WrongUsage('Give an address, or --none to have no e-mail.')
    const email = address ?? null
    await withService(io, async (service) => {
      const { account } = await accountOf(service, ref)
      await service.operations.setEmail({ account_id: account.id, email }, cli)
      out.result(
        { account_id: account.id, email, email_verified: false },
        email === null
          ? `${account.username} has no e-mail now.`
          : `${account.username} has the e-mail ${email}.`,
      )
    })
  },
})

const verifyEmail = subcommand('account', {
  name: 'verify-email',
  usage: 'REF',
  args: 1,
  summary: 'Mark the e-mail of an account as verified.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      const { changed } = await service.operations.verifyEmail({ account_id: account.id }, cli)
      out.result({ account_id: account.id, email_verified: true, changed }, `${account.email} is verified.`)
    }),
})

const unlock = subcommand('account', {
  name: 'unlock',
  usage: 'REF',
  args: 1,
  summary: 'Forget the failed logins of an account, so that it may sign in at once.',
  details:
    'Needs CELLKEEP_LIMIT_STORE=postgres. With the store `memory` each server counts in its own memory, which\nno command reaches: wait until the window is over, or restart the server.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      if (service.config.limit_store === 'memory') throw outOfReach(service.config)
      await service.operations.unlockAccount({ account_id: account.id }, cli)
      out.result({ account_id: account.id, unlocked: true }, `${account.username} may sign in again.`)
    }),
})

/** Rather than to say "done" of what a process can do in its own memory only. */
function outOfReach({ limit_login_account }: Config): StartError {
  const minutes = Math.ceil((limit_login_account?.seconds ?? 0) / 60)
  return new StartError(
    'limiters_in_memory',
    `Nothing was changed: failed logins are counted in the memory of each server (CELLKEEP_LIMIT_STORE=memory), which a command cannot reach. They are forgotten ${minutes} minutes after they happened, and when the server is restarted.`,
    1,
  )
}

const deleteOne = subcommand('account', {
  name: 'delete',
  usage: 'REF',
  args: 1,
  summary: 'Delete an account: it cannot sign in, its sessions and tokens are gone. Its names stay reserved.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      const { deleted } = await service.operations.deleteAccount({ account_id: account.id }, cli)
      out.result(
        { account_id: account.id, deleted },
        `${account.username} ${deleted ? 'is' : 'was already'} deleted. \`cellkeep account undelete ${account.username}\` brings it back; \`account purge\` removes it for good.`,
      )
    }),
})

const undelete = subcommand('account', {
  name: 'undelete',
  usage: 'REF',
  args: 1,
  summary: 'Bring a deleted account back, with its actors and roles; it has to sign in anew.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      const { undeleted } = await service.operations.undeleteAccount({ account_id: account.id }, cli)
      out.result(
        { account_id: account.id, undeleted },
        undeleted ? `${account.username} is back.` : `${account.username} was not deleted.`,
      )
    }),
})

const purge = subcommand('account', {
  name: 'purge',
  usage: 'REF --confirm',
  args: 1,
  summary: 'Remove an account and all that is its own, for good. Audit rows keep its ids, and now its names.',
  options: { confirm: { type: 'boolean' } },
  run: ({ args, options, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      await service.operations.purgeAccount(
        { account_id: account.id, confirm: options.confirm === true },
        cli,
      )
      out.result({ account_id: account.id, purged: true }, `${account.username} is gone.`)
    }),
})

export const account = group({
  name: 'account',
  summary: 'Make, show, change, delete and purge accounts.',
  details:
    'REF is an account by its id, username or e-mail.\n\nExamples:\n  cellkeep account create --username ada --email ada@example.org\n  cellkeep account show ada@example.org\n  pass show ada | cellkeep account set-password ada\n  cellkeep account purge ada --confirm',
  commands: [create, list, show, setPassword, setEmail, verifyEmail, unlock, deleteOne, undelete, purge],
})

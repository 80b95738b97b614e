import { rolesOf } from './account-view.ts'
import { accountOf } from './choose.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { cli, withService } from './with-service.ts'

const list = subcommand('actor', {
  name: 'list',
  usage: 'REF',
  args: 1,
  summary: 'The actors of an account, removed ones included.',
  run: ({ args, out, io }) =>
    withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      await out.table(
        await service.operations.listActors({ account_id: account.id }),
        {
          ACTOR: ({ id }) => id,
          NAME: ({ name }) => name,
          CREATED: ({ created_at }) => created_at,
          REMOVED: ({ deleted_at }) => deleted_at,
          ROLES: ({ role_grants }) => rolesOf(role_grants),
        },
        'It has no actor.',
      )
    }),
})

const add = subcommand('actor', {
  name: 'add',
  usage: 'REF --name NAME',
  args: 1,
  summary: 'Give an account one more actor. Its calls must then say which one acts (`acting`).',
  options: { name: { type: 'string' } },
  run: async ({ args, options: { name }, out, io }) => {
    if (name === undefined) throw new WrongUsage('Say which --name it gets.')
    await withService(io, async (service) => {
      const { account } = await accountOf(service, args[0])
      const made = await service.operations.addActor({ account_id: account.id, name }, cli)
      out.result(made, { actor: made.id, name: made.name, account: account.id })
    })
  },
})

const rename = subcommand('actor', {
  name: 'rename',
  usage: 'ACTOR --name NAME',
  args: 1,
  summary: 'Give an actor another name.',
  options: { name: { type: 'string' } },
  run: async ({ args: [actor_id = ''], options: { name }, out, io }) => {
    if (name === undefined) throw new WrongUsage('Say which --name it gets.')
    await withService(io, async ({ operations }) => {
      const actor = await operations.renameActor({ actor_id, name }, cli)
      out.result(actor, { actor: actor.id, name: actor.name })
    })
  },
})

const remove = subcommand('actor', {
  name: 'remove',
  usage: 'ACTOR',
  args: 1,
  summary:
    'Remove an actor for good; its roles have no effect from then on. Not the last one, nor the keeper.',
  run: ({ args: [actor_id = ''], out, io }) =>
    withService(io, async ({ operations }) => {
      await operations.removeActor({ actor_id }, cli)
      out.result({ actor_id, removed: true }, `The actor ${actor_id} is removed.`)
    }),
})

export const actor = group({
  name: 'actor',
  summary: 'The actors of an account: whom it acts as, and who holds roles.',
  details:
    'REF is an account by its id, username or e-mail; ACTOR is the id that `actor list` shows.\n\nExample:\n  cellkeep actor add ada --name "Ada, accounting"',
  commands: [list, add, rename, remove],
})

import { accountOf, liveActorOf } from './choose.ts'
import { group, subcommand } from './command.ts'
import { cli, withService } from './with-service.ts'

const transfer = subcommand('keeper', {
  name: 'transfer',
  usage: 'REF [--actor ACTOR]',
  args: 1,
  summary: 'Make an actor the keeper; whoever was it before no longer is, and can be deleted.',
  options: { actor: { type: 'string' } },
  run: ({ args, options, out, io }) =>
    withService(io, async (service) => {
      const entry = await accountOf(service, args[0])
      const actor_id = liveActorOf(entry, options.actor)
      const done = await service.operations.transferKeeper({ actor_id }, cli)
      out.result({ actor_id, ...done }, `${entry.account.username} is the keeper.`)
    }),
})

export const keeper = group({
  name: 'keeper',
  summary: 'The keeper, who owns the installation and cannot be deleted; make it somebody else.',
  details:
    'The bootstrap makes the keeper, and nothing but this command moves it.\n\nExample:\n  cellkeep keeper transfer grace',
  commands: [transfer],
})

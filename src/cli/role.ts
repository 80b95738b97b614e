import { refusal } from '../errors.ts'
import { accountOf, holderOf, liveActorOf } from './choose.ts'
import { group, subcommand } from './command.ts'
import { cli, withService } from './with-service.ts'

const where = '[--actor ACTOR] [--scope-kind KIND --scope-id ID]'
const whereOptions = {
  actor: { type: 'string' },
  'scope-kind': { type: 'string' },
  'scope-id': { type: 'string' },
} as const

const assign = subcommand('role', {
  name: 'assign',
  usage: `REF ROLE ${where} [--expires-at TIME]`,
  args: 2,
  summary: 'Give a role to an actor, everywhere or at a scope, for good or until a time.',
  details:
    'A role that it holds already is only ever prolonged. The role must have the grant path `admin`. TIME is\nlike 2030-01-31T12:00:00Z.',
  options: { ...whereOptions, 'expires-at': { type: 'string' } },
  run: ({ args: [ref, role = ''], options, out, io }) =>
    withService(io, async (service) => {
      const entry = await accountOf(service, ref)
      const actor_id = liveActorOf(entry, options.actor)
      const granted = await service.operations.grantRole(
        {
          actor_id,
          role,
          path: 'admin',
          scope_kind: options['scope-kind'] ?? null,
          scope_id: options['scope-id'] ?? null,
          expires_at: options['expires-at'] ?? null,
        },
        cli,
      )
      const until = granted.expires_at === null ? '' : ` until ${granted.expires_at}`
      const how = granted.created ? 'is' : 'already was'
      out.result({ actor_id, ...granted }, `${entry.account.username} ${how} ${role}${until}.`)
    }),
})

const revoke = subcommand('role', {
  name: 'revoke',
  usage: `REF ROLE ${where}`,
  args: 2,
  summary: 'Take a role from an actor, the global grant unless a scope is named. Not from the last admin.',
  details: '--actor may also name a removed actor; `actor list` shows which roles it still holds.',
  options: whereOptions,
  run: ({ args: [ref, role], options, out, io }) =>
    withService(io, async (service) => {
      const entry = await accountOf(service, ref)
      const scope_id = options['scope-id']?.toLowerCase() ?? null
      const { id: actor_id, role_grants } = await holderOf(service, entry, options.actor)
      const grant = role_grants.find(
        (one) =>
          one.role === role &&
          one.scope_kind === (options['scope-kind'] ?? null) &&
          one.scope_id === scope_id,
      )
      if (!grant) throw refusal('role_grant_not_found')
      await service.operations.revokeRole({ actor_id, role_grant_id: grant.id }, cli)
      out.result(
        { actor_id, role_grant_id: grant.id, revoked: true },
        `${entry.account.username} is no longer ${role}.`,
      )
    }),
})

export const role = group({
  name: 'role',
  summary: 'Give roles and take them; `account show` lists them.',
  details:
    'REF is an account by its id, username or e-mail. --actor names one of its actors where it has several.\nRoles other than `admin` are declared in the config file; `keeper` moves by `keeper transfer` only.\n\nExamples:\n  cellkeep role assign ada admin\n  cellkeep role revoke ada admin',
  commands: [assign, revoke],
})

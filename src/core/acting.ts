import type { Caller, Candidate } from '../auth/caller.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import type { AuthSpec } from './method.ts'

/**
 * Resolves the acting actor: the one the caller named, else the account's only one, else a refusal that lists
 * the candidates. `acting` is the raw input value; undefined means it was not sent. Returns null when the method
 * resolves no actor.
 */
export function resolveActor(auth: AuthSpec, caller: Caller | null, acting: unknown): Candidate | null {
  if (auth.actor === 'none') return null
  const named = acting === undefined ? undefined : Uuid.safeParse(acting)
  if (named && !named.success)
    throw refusal('invalid_params', {
      issues: [
        issue(
          ['acting'],
          typeof acting === 'string' ? 'invalid_format' : 'invalid_type',
          'The id of an actor of the account is required.',
        ),
      ],
    })
  if (!caller) return null
  const candidates = caller.candidates ?? []
  if (candidates.length === 0) throw refusal('no_actors_on_account')
  if (named) {
    const chosen = candidates.find((candidate) => candidate.id === named.data)
    if (!chosen) throw refusal('actor_not_on_account')
    return chosen
  }
  if (candidates.length > 1)
    throw refusal('actor_required', { available: candidates.map(({ id, name }) => ({ id, name })) })
  return candidates[0] as Candidate
}

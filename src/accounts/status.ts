import { z } from 'zod'
import { route } from '../core/route.ts'
import { refusal } from '../errors.ts'
import { RoleGrantSummary } from '../roles/grants.ts'
import { Uuid } from '../wire/types.ts'
import { SessionAccount } from './accounts.ts'

/** `GET /status`: who is signed in, or 401 with `bootstrap_available`. */
export const status = route({
  doc: 'The account, its actor and role grants; or 401 with `bootstrap_available`: true until the first keeper exists, false afterwards.',
  method: 'GET',
  path: '/status',
  auth: { account: 'none', actor: 'none' },
  anyQuery: true,
  query: z.object({ acting: Uuid.optional() }),
  output: z.object({
    account: SessionAccount,
    actor: z.object({ id: Uuid, name: z.string() }).nullable(),
    role_grants: z.array(RoleGrantSummary),
  }),
  errors: ['authentication_required'],
  async handler(_input, { app, carriers, query, ip }) {
    const caller = await app.callers.read({ carriers, withActors: true, ip })
    if (!caller) {
      const bootstrap_available = await app.bootstrap.availability()
      throw refusal('authentication_required', {
        ...(bootstrap_available !== undefined && { bootstrap_available }),
      })
    }
    const candidates = caller.candidates ?? []
    const named = query.get('acting')
    const wanted = named === null ? undefined : Uuid.safeParse(named)
    const actor =
      wanted === undefined
        ? candidates.length === 1 && candidates[0]
        : candidates.find(({ id }) => wanted.success && id === wanted.data)
    return {
      body: {
        account: caller.account,
        actor: actor ? { id: actor.id, name: actor.name } : null,
        role_grants: actor ? actor.role_grants : [],
      },
    }
  },
})

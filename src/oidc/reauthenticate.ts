import { callerSubject, mutate } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { lockSession } from './link.ts'
import type { Context, Finished, Proven } from './proven.ts'

/** Opens a new session in place of the one that began the flow, if the identity belongs to the same account. */
export async function reauthenticate(
  context: Context,
  { provider, identity, flow }: Proven,
): Promise<Finished> {
  const { app, carriers, ip } = context
  const account_id = flow.account_id as string
  const subject = callerSubject({ account: { id: account_id } }, ip)
  return await mutate(app, 'reauthenticate', { subject }, async (work) => {
    await lockSession(work.db, flow)
    const used = await work.db.run(sql`
      update account_link set last_used_at = now()
      where account_id = ${account_id}::uuid and issuer = ${identity.issuer} and subject = ${identity.subject}`)
    if (used === 0) throw refusal('oidc_failed')
    const session = await signIn(app, work, {
      account_id,
      proof: { methods: ['oidc'], strong: identity.strong },
      provider: provider.id,
      presented: carriers,
      ip,
      renews: flow.session_id as string,
    })
    return { created: false, linked: false, session }
  })
}

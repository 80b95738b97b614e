import { client, type Output } from '../api/client.ts'
import { useCall, useRead } from '../api/query.ts'
import { provenBy, security } from '../copy/security.ts'
import { Facts } from '../ui/facts.tsx'
import { Badge } from '../ui/note.tsx'
import { Resource } from '../ui/resource.tsx'
import { Time } from '../ui/time.tsx'
import { Links } from './links.tsx'
import { Passkeys } from './passkeys.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'
import { Totp } from './totp.tsx'

export type SignIn = Output<'account_sign_in_get'>
export type SecurityProps = { of: SignIn }

/**
 * The ways in which the account signs in. Those that this server does not offer are left out, unless the account has
 * them.
 */
export function Security() {
  const signIn = useCall('account_sign_in_get', {})
  const { data: offers } = useRead([null, 'options'], () => client.account.options())
  return (
    <Resource of={signIn}>
      {(of) => (
        <div class="page-body">
          <Overview of={of} />
          {(offers?.second_factor || of.totp) && <Totp of={of} />}
          {of.second_factor.active && <RecoveryCodes of={of} />}
          {(offers?.passkeys || of.passkeys.length > 0) && (
            <Passkeys of={of} isOffered={offers?.passkeys ?? false} />
          )}
          <Links links={of.links} providers={offers?.providers ?? []} />
        </div>
      )}
    </Resource>
  )
}

function Overview({ of: { second_factor, session } }: { of: SignIn }) {
  const { active, required } = second_factor
  return (
    <section class="section">
      <Facts
        of={[
          [
            security.second_factor,
            <Badge key="second" kind={active ? 'ok' : required ? 'bad' : 'plain'}>
              {active ? security.on : required ? security.missing : security.off}
            </Badge>,
          ],
          session && [security.this_session, provenBy(session.methods)],
          session && [security.signed_in, <Time key="proven" at={session.authenticated_at} />],
        ]}
      />
    </section>
  )
}

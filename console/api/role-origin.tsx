import { origin, words } from '../copy/common.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Facts } from '../ui/facts.tsx'
import { shortId } from '../ui/id.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { useCall } from './query.ts'
import type { RoleGrant } from './session.ts'

/** Who gave a role, by which offer, and how long it lasts. */
export function RoleOrigin({ grant, onClose }: { grant: RoleGrant; onClose(): void }) {
  const found = useCall('role_grant_explain', { role_grant_id: grant.id })
  const where = grant.scope_id ? `${grant.scope_kind} ${shortId(grant.scope_id)}` : words.everywhere
  return (
    <Dialog title={origin.title(grant.role)} onClose={onClose}>
      <Resource of={found}>
        {({ role_grant, state, via, granted_by, offer, revoked_reason }) => (
          <Facts
            of={[
              [origin.how, origin.via[via]],
              granted_by && [origin.by, <Text key="by">{granted_by.username}</Text>],
              [origin.where, where],
              [origin.since, <Time key="since" at={role_grant.created_at} />],
              [
                origin.ends,
                role_grant.expires_at ? <Until key="ends" at={role_grant.expires_at} /> : words.never,
              ],
              [origin.state, origin.states[state]],
              offer && [origin.offered, <Time key="offered" at={offer.created_at} />],
              offer?.message && [
                origin.message,
                <Text key="message" long>
                  {offer.message}
                </Text>,
              ],
              revoked_reason && [
                origin.reason,
                <Text key="reason" long>
                  {revoked_reason}
                </Text>,
              ],
            ]}
          />
        )}
      </Resource>
    </Dialog>
  )
}

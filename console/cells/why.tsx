import { useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { ActorPicker } from '../api/actor-picker.tsx'
import type { Output } from '../api/client.ts'
import { useCall } from '../api/query.ts'
import { type Session, signedIn } from '../api/session.ts'
import { why } from '../copy/why.ts'
import { Badge } from '../ui/note.tsx'
import { Resource } from '../ui/resource.tsx'
import { Until } from '../ui/time.tsx'
import type { PartProps } from './cell-page.tsx'

type Explained = Output<'cell_access_explain'>
/** A near miss without a grant of the cell concerns this role. */
const admin = { role: 'admin', scope_id: null }

/** Why somebody may see, edit or manage the cell, or why not: the rules that decide, and what nearly would. */
export function Why({ got }: PartProps) {
  const own = (signedIn.value as Session).actor?.id ?? ''
  const [chosen, choose] = useState('')
  const actor_id = chosen || own
  const explained = useCall('cell_access_explain', { cell_id: got.cell.id, actor_id })
  const everyone = useCall('cell_access_explain', { cell_id: got.cell.id }, { enabled: got.can_grant })
  const grants = everyone.data?.everyone?.grants.map(({ grant }) => grant)
  const sharedBy = ({ cell_grant_id }: Explained['near'][number]) =>
    cell_grant_id ? grants?.find(({ id }) => id === cell_grant_id) : admin
  return (
    <>
      {got.can_grant && (
        <div class="bar">
          <ActorPicker label={why.who} value={chosen} onChange={choose} />
        </div>
      )}
      <Resource of={explained}>
        {(answer) => (
          <section class="section">
            <header>
              <h2>
                <ActorName id={actor_id} />
              </h2>
              <Verdict of={answer} />
            </header>
            <ul class="list">
              {answer.reasons.map((one) => (
                <li key={`${one.tier} ${one.via} ${one.cell_grant_id} ${one.role_grant?.id}`}>
                  <Badge kind="ok">{why.tiers[one.tier]}</Badge>
                  <span class="grow">
                    {why.reason(one)} <Held by={one.role_grant} />
                  </span>
                </li>
              ))}
              {answer.near.map((one) => (
                <li key={`${one.why} ${one.cell_grant_id} ${one.role_grant_id}`}>
                  <Badge>{why.nearly}</Badge>
                  <span class="grow soft">{why.near[one.why](sharedBy(one))}</span>
                </li>
              ))}
              {answer.reasons.length + answer.near.length === 0 && <li class="soft">{why.nothing}</li>}
            </ul>
          </section>
        )}
      </Resource>
      {everyone.data?.everyone && (
        <section class="section">
          <h2>{why.everyone}</h2>
          <p>{why.summary(everyone.data.everyone)}</p>
        </section>
      )}
    </>
  )
}

/** How long the role that gives access is held, and who gave it. */
function Held({ by }: { by: Explained['reasons'][number]['role_grant'] }) {
  if (!by) return null
  return (
    <span class="soft">
      {why.held} {by.expires_at ? <Until at={by.expires_at} /> : why.without_end}, {why.given_by}{' '}
      {by.granted_by ? <ActorName id={by.granted_by} /> : why.the_server}.
    </span>
  )
}

function Verdict({ of: { verdict } }: { of: Explained }) {
  if (!verdict) return null
  const may = (['view', 'edit', 'manage'] as const).filter((tier) => verdict[tier])
  return may.length > 0 ? (
    <span class="row">
      {may.map((tier) => (
        <Badge key={tier} kind="ok">
          {why.tiers[tier]}
        </Badge>
      ))}
    </span>
  ) : (
    <Badge kind="bad">{why.no}</Badge>
  )
}

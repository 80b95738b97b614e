import { useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { EventRows } from '../api/event-rows.tsx'
import { useCall, useCount } from '../api/query.ts'
import { RoleOrigin } from '../api/role-origin.tsx'
import { useSend } from '../api/send.ts'
import { type RoleGrant, signedIn } from '../api/session.ts'
import { origin, words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { people } from '../copy/people.ts'
import { useDraft } from '../lib/draft.ts'
import { to } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { Counted, notCounted } from '../ui/counted.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { type Concerned, Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { TextArea } from '../ui/field.tsx'
import { shortId } from '../ui/id.tsx'
import { Text } from '../ui/text.tsx'
import { Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { type PartProps, spoiltByRole } from './person-page.tsx'

const whereOf = ({ scope_kind, scope_id }: Pick<RoleGrant, 'scope_kind' | 'scope_id'>): string =>
  scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere

/** The roles of each actor of the person, and the offers that wait for an answer. */
export function Access({ person }: PartProps) {
  const [ending, end] = useState<RoleGrant | null>(null)
  const [shown, show] = useState<RoleGrant | null>(null)
  const { actors, pending_offers, account } = person
  return (
    <>
      {actors.map(({ id, name, role_grants }) => (
        <section key={id} class="section">
          <header>
            <h2>
              <Text>{people.actor(name)}</Text>
            </h2>
          </header>
          {role_grants.length === 0 ? (
            <p class="soft">{people.no_roles}</p>
          ) : (
            <DataTable
              label={people.actor(name)}
              rows={role_grants}
              keyOf={(one) => one.id}
              columns={[
                { head: people.role, cell: ({ role }) => <strong>{role}</strong> },
                { head: people.where, cell: whereOf },
                {
                  head: people.ends,
                  label: people.ends,
                  cell: ({ expires_at }) => (expires_at ? <Until at={expires_at} /> : words.never),
                },
                {
                  head: people.given_by,
                  label: people.given_by,
                  cell: (one) => (
                    <button type="button" class="link" onClick={() => show(one)} title={origin.ask}>
                      {one.granted_by ? <ActorName id={one.granted_by} /> : people.the_server}
                    </button>
                  ),
                },
                {
                  head: people.end,
                  end: true,
                  width: '64px',
                  cell: (one) => (
                    <Button small onClick={() => end(one)}>
                      {people.end}
                      <span class="hidden-text">{`${one.role} ${whereOf(one)}`}</span>
                    </Button>
                  ),
                },
              ]}
            />
          )}
        </section>
      ))}
      {pending_offers.length > 0 && (
        <section class="section">
          <h2>{people.offered}</h2>
          <ul class="list">
            {pending_offers.map((one) => (
              <li key={one.offer_id}>
                <span class="grow">
                  <strong>{one.role}</strong> {whereOf(one)}
                  {actors.length > 1 && one.to_actor_id && (
                    <>
                      , {people.offered_to} <ActorName id={one.to_actor_id} />
                    </>
                  )}
                </span>
                <span class="soft">{people.offered_until(shortTime(one.expires_at))}</span>
                {one.from_actor_id === signedIn.value?.actor?.id && <TakeBack offer={one} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      <History account_id={account.id} />
      {shown && <RoleOrigin grant={shown} onClose={() => show(null)} />}
      {ending && <EndRole grant={ending} account={account} onClose={() => end(null)} />}
    </>
  )
}

type Waiting = PartProps['person']['pending_offers'][number]

function TakeBack({ offer: { offer_id, role } }: { offer: Waiting }) {
  const retract = useSend('role_grant_offer_retract', {
    spoils: ['admin_account_get', 'admin_account_list', 'role_grant_offer_history'],
    done: () => toast(people.taken_back(role)),
  })
  return (
    <>
      <Fault text={retract.error && explain(retract.error)} />
      <Button
        small
        isBusy={retract.isBusy}
        wait={retract.wait}
        onClick={() => void retract.send({ offer_id })}
      >
        {people.take_back}
        <span class="hidden-text">{role}</span>
      </Button>
    </>
  )
}

const ofRoles = ['role_grant_create', 'role_grant_revoke']

/** Roles of the person that were given or ended lately. */
function History({ account_id }: { account_id: string }) {
  const { data } = useCall('audit_log_list', { account_id, event_types: ofRoles, limit: 5 })
  if (!data || data.events.length === 0) return null
  return (
    <section class="section">
      <header>
        <h2>{people.history}</h2>
        <a class="push" href={to('/audit', { account: account_id, event: ofRoles.join(',') })}>
          {people.whole_history}
        </a>
      </header>
      <EventRows rows={data.events} />
    </section>
  )
}

function EndRole({ grant, account, onClose }: { grant: RoleGrant; account: Concerned; onClose(): void }) {
  const name = account.username
  const { form, set, isDirty } = useDraft(`end ${grant.id}`, { reason: '' })
  const found = useCount('role_grant_explain', { role_grant_id: grant.id })
  const revoke = useSend('role_grant_revoke', {
    spoils: spoiltByRole,
    done: () => toast(people.ended(grant.role)),
  })
  const confirm = async (): Promise<void> => {
    const sent = { actor_id: grant.actor_id, role_grant_id: grant.id, reason: form.reason.trim() || null }
    if (await revoke.send(sent)) onClose()
  }
  return (
    <Confirm
      title={people.end_question(grant.role, whereOf(grant), name)}
      whom={account}
      verb={people.end_verb(grant.role)}
      onConfirm={() => void confirm()}
      onClose={onClose}
      isDirty={isDirty}
      of={revoke}
      // Ending it matters more than the count.
      disabled={!found.error && notCounted(found)}
    >
      <p>{people.end_about(grant.role, name)}</p>
      <Counted of={found}>{({ dependent_offers }) => people.end_offers(dependent_offers)}</Counted>
      <TextArea
        label={people.end_reason(name)}
        value={form.reason}
        onInput={(reason) => set({ reason })}
        maxlength={500}
        rows={2}
      />
    </Confirm>
  )
}

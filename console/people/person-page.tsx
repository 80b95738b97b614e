import type { ComponentType } from 'preact'
import type { Output } from '../api/client.ts'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { people } from '../copy/people.ts'
import { personSignIn } from '../copy/person-sign-in.ts'
import { place, setQuery, to } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import type { PageProps } from '../routes.ts'
import { Button } from '../ui/button.tsx'
import { Id } from '../ui/id.tsx'
import { Tabs, titleOf } from '../ui/link.tsx'
import { Note } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { ErrorNote, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { Words } from '../ui/words.tsx'
import { Access } from './access.tsx'
import { GiveRole } from './give-role.tsx'
import { PersonSessions, PersonTokens } from './person-credentials.tsx'
import { PersonCells, PersonEvents, PersonOffers } from './person-lists.tsx'
import { PersonMenu } from './person-menu.tsx'
import { PersonSignIn } from './person-sign-in.tsx'
import { PurgedPerson } from './purged-person.tsx'

export type Person = Output<'admin_account_get'>
export type PartProps = { person: Person }

/** What is outdated after a role was given or ended. */
export const spoiltByRole = [
  'admin_account_get',
  'admin_account_list',
  'role_holder_list',
  'audit_log_role_grant_history',
] as const

/** Only the operator of the server can change how such a person signs in. */
export const isPrivileged = ({ actors }: Person): boolean =>
  actors.some(({ role_grants }) =>
    role_grants.some(({ role, scope_id }) => scope_id === null && ['admin', 'keeper'].includes(role)),
  )

const parts: Record<
  string,
  { label: string; Part: ComponentType<PartProps>; count?: keyof Person['counts'] }
> = {
  '': { label: people.tabs.access, Part: Access },
  sign_in: { label: personSignIn.tab, Part: PersonSignIn },
  sessions: { label: people.tabs.sessions, Part: PersonSessions, count: 'sessions' },
  tokens: { label: people.tabs.tokens, Part: PersonTokens, count: 'tokens' },
  offers: { label: people.tabs.offers, Part: PersonOffers, count: 'offers' },
  cells: { label: people.tabs.cells, Part: PersonCells, count: 'cells' },
  audit: { label: people.tabs.audit, Part: PersonEvents },
}

export default function PersonPage({ params: { id = '', tab = '' } }: PageProps) {
  const person = useCall('admin_account_get', { account_id: id })
  const { data } = person
  const { Part } = parts[tab] ?? { Part: Access }
  const name = data?.account.username ?? ''
  const back = { href: to('/people'), label: people.title }
  if (!data) {
    const failed = person.error && <ErrorNote error={person.error} onRetry={person.retry} />
    if (person.error?.reason === 'account_not_found') return <PurgedPerson id={id}>{failed}</PurgedPerson>
    return (
      <Page title={people.title} back={back}>
        {failed || <Resource of={person}>{() => null}</Resource>}
      </Page>
    )
  }
  const { account, counts } = data
  const tabs = Object.entries(parts).map(([key, { label, count }]) => ({
    href: to(`/people/${id}${key && `/${key}`}`),
    label,
    count: count && counts[count] > 0 ? people.shown_count(counts[count]) : undefined,
    isCurrent: key === tab,
  }))
  const isLive = account.deleted_at === null
  return (
    <Page
      title={titleOf(name, tabs)}
      heading={name}
      back={back}
      actions={
        <>
          {isLive && (
            <Button kind="primary" shortcut="r" onClick={() => setQuery({ dialog: 'give' })}>
              {people.give}
            </Button>
          )}
          {isLive && <PersonMenu person={data} />}
        </>
      }
      about={
        <>
          {account.email && <Text>{account.email}</Text>}
          <span>
            {people.since} <Time at={account.created_at} />
          </span>
          <Id id={account.id} />
        </>
      }
      tabs={<Tabs label={people.parts} tabs={tabs} />}
    >
      {person.error && <ErrorNote error={person.error} isBusy={person.isFetching} onRetry={person.retry} />}
      {!isLive && <Deleted person={data} />}
      <Part person={data} />
      {isLive && place.value.query.get('dialog') === 'give' && (
        <GiveRole person={data} onClose={() => setQuery({ dialog: null, role: null })} />
      )}
    </Page>
  )
}

function Deleted({ person: { account } }: PartProps) {
  const undelete = useSend('account_undelete', {
    spoils: ['admin_account_get', 'admin_account_list'],
    done: () => toast(people.undeleted),
  })
  const wanted = { account_id: account.id, event_types: ['account_delete'], outcome: 'success' as const }
  const [deletion] = useCall('audit_log_list', { ...wanted, limit: 1 }).data?.events ?? []
  return (
    <div class="stack-tight">
      <Note
        kind="warn"
        action={
          <Button
            small
            isBusy={undelete.isBusy}
            wait={undelete.wait}
            onClick={() => void undelete.send({ account_id: account.id })}
          >
            {people.undelete}
          </Button>
        }
      >
        {undelete.error
          ? explain(undelete.error)
          : people.deleted_at(shortTime(account.deleted_at ?? ''), deletion?.username)}
      </Note>
      <p class="soft small">
        <Words>{people.purge(account.id)}</Words>
      </p>
    </div>
  )
}

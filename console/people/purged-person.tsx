import type { ComponentChildren } from 'preact'
import { useCall } from '../api/query.ts'
import { people } from '../copy/people.ts'
import { to } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import { Id } from '../ui/id.tsx'
import { Badge, Note } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Skeleton } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { EventsOf } from './person-lists.tsx'

/** What the audit log still knows of an account that is gone; if that is nothing, `children`. */
export function PurgedPerson({ id, children }: { id: string; children: ComponentChildren }) {
  const wanted = { account_id: id, event_types: ['account_purge'], outcome: 'success' as const, limit: 1 }
  const { data, isFetching } = useCall('audit_log_list', wanted)
  const back = { href: to('/people'), label: people.title }
  const [purge] = data?.events ?? []
  if (!purge)
    return (
      <Page title={people.title} back={back}>
        {isFetching ? <Skeleton lines={4} /> : children}
      </Page>
    )
  const name = String(purge.metadata?.username ?? people.purged)
  return (
    <Page
      title={name}
      heading={<Text long>{name}</Text>}
      back={back}
      about={
        <>
          <Badge kind="warn">{people.purged}</Badge>
          <Id id={id} />
        </>
      }
    >
      <Note kind="warn">{people.purged_at(shortTime(purge.created_at), purge.username)}</Note>
      <EventsOf account_id={id} />
    </Page>
  )
}

import { inbox } from '../copy/inbox.ts'
import { to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { Tabs, titleOf } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { History, Sent } from './history.tsx'
import { Waiting } from './waiting.tsx'

export default function InboxPage({ params: { tab = '' } }: PageProps) {
  const tabs = [
    { href: to('/inbox'), label: inbox.waiting, isCurrent: tab === '' },
    { href: to('/inbox/sent'), label: inbox.sent, isCurrent: tab === 'sent' },
    { href: to('/inbox/history'), label: inbox.history, isCurrent: tab === 'history' },
  ]
  return (
    <Page
      title={titleOf(inbox.title, tabs)}
      heading={inbox.title}
      tabs={<Tabs label={inbox.parts} tabs={tabs} />}
    >
      {tab === 'history' ? <History /> : tab === 'sent' ? <Sent /> : <Waiting />}
    </Page>
  )
}

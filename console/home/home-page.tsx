import type { ComponentChildren } from 'preact'
import { useCall } from '../api/query.ts'
import { isAdmin } from '../api/session.ts'
import { home } from '../copy/home.ts'
import { to } from '../lib/router.ts'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { Checklist } from './checklist.tsx'
import { RecentCells } from './recent-cells.tsx'

/** What waits, what was made lately, and on a new server what to do first. */
export default function HomePage() {
  const cells = useCall('cell_list', { limit: 5, order_by: 'updated_at' })
  return (
    <Page title={home.title}>
      {isAdmin.value && <Checklist />}
      <div class="columns">
        <Section title={home.cells} href={to('/cells')}>
          <Resource
            of={cells}
            isEmpty={({ cells }) => cells.length === 0}
            empty={<p class="soft">{home.no_cells}</p>}
          >
            {({ cells }) => <RecentCells cells={cells} />}
          </Resource>
        </Section>
      </div>
    </Page>
  )
}

const Section = ({ title, href, children }: { title: string; href: string; children: ComponentChildren }) => (
  <section class="section">
    <header>
      <h2>{title}</h2>
      <a class="push" href={href}>
        {home.all}
        <span class="hidden-text">{title}</span>
      </a>
    </header>
    {children}
  </section>
)

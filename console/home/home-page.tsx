import type { ComponentChildren } from 'preact'
import { ActorName } from '../api/actor-name.tsx'
import type { Output } from '../api/client.ts'
import { Sentence } from '../api/event-rows.tsx'
import { useCall } from '../api/query.ts'
import { isAdmin } from '../api/session.ts'
import { home } from '../copy/home.ts'
import { to } from '../lib/router.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
import { Resource, Skeleton } from '../ui/resource.tsx'
import { TimeInLink } from '../ui/time.tsx'
import { Checklist, useSteps } from './checklist.tsx'
import { RecentCells } from './recent-cells.tsx'

/** What waits, what was made and what happened lately, and on a new server what to do first. */
export default function HomePage() {
  const offers = useCall('role_grant_offer_list', { limit: 50 })
  const cells = useCall('cell_list', { limit: 5, order_by: 'updated_at' }, { fresh: true })
  const steps = useSteps(isAdmin.value)
  // Waits until it is known what comes above the lists, so that they do not move.
  if ((offers.isLoading || steps === undefined) && !cells.error)
    return (
      <Page title={home.title}>
        <Skeleton lines={6} />
      </Page>
    )
  const waiting = offers.data?.offers ?? []
  return (
    <Page title={home.title}>
      {steps && <Checklist steps={steps} />}
      {waiting.length > 0 && (
        <Section title={home.waiting} href={to('/inbox')}>
          <Offers offers={waiting.slice(0, 3)} />
        </Section>
      )}
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
        {isAdmin.value && <LatestEvents />}
      </div>
    </Page>
  )
}

const Offers = ({ offers }: { offers: Output<'role_grant_offer_list'>['offers'] }) => (
  <ul class="list">
    {offers.map(({ offer_id, from_actor_id, role }) => (
      <li key={offer_id}>
        <span class="grow">
          <ActorName id={from_actor_id} /> {home.offers_you} <strong>{role}</strong>
        </span>
        <ButtonLink small href={to('/inbox')}>
          {home.review}
          <span class="hidden-text">{role}</span>
        </ButtonLink>
      </li>
    ))}
  </ul>
)

function LatestEvents() {
  const events = useCall('audit_log_list', { limit: 5 }, { fresh: true })
  return (
    <Section title={home.events} href={to('/audit')}>
      <Resource of={events}>
        {({ events }) => (
          <ul class="list">
            {events.map((one) => (
              <li key={one.id}>
                <span class="grow">
                  <Sentence of={one} />
                </span>
                <a class="soft small" href={to(`/audit/${one.seq}`)}>
                  <TimeInLink at={one.created_at} />
                </a>
              </li>
            ))}
          </ul>
        )}
      </Resource>
    </Section>
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

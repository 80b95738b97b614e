import { useCall } from '../api/query.ts'
import { home } from '../copy/home.ts'
import { remembered } from '../lib/remembered.ts'
import { to } from '../lib/router.ts'
import { IconButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Badge } from '../ui/note.tsx'
import './checklist.css'

const hidden = remembered('checklist')

/** The way from an empty server to a second person who works with you; it ticks itself from what is there. */
export function Checklist() {
  const events = ['cell_create', 'invite_create', 'role_grant_offer_create', 'cell_grant_create'] as const
  const [cell, invite, role, share] = events.map(
    (event_type) =>
      useCall('audit_log_list', { event_type, outcome: 'success', limit: 1 }).data?.events.length,
  )
  const steps = [
    { label: home.steps.server, isDone: true, href: to('/') },
    { label: home.steps.cell, isDone: Boolean(cell), href: to('/cells', { dialog: 'new' }) },
    { label: home.steps.invite, isDone: Boolean(invite), href: to('/invites', { dialog: 'invite' }) },
    { label: home.steps.role, isDone: Boolean(role), href: to('/people') },
    { label: home.steps.share, isDone: Boolean(share), href: to('/cells') },
  ]
  const done = steps.filter(({ isDone }) => isDone).length
  const isKnown = [cell, invite, role, share].every((one) => one !== undefined)
  if (hidden.value || !isKnown || done === steps.length) return null
  return (
    <section class="card checklist" aria-label={home.start}>
      <header class="row">
        <h2>{home.start}</h2>
        <Badge>{home.done(done, steps.length)}</Badge>
        <span class="push">
          <IconButton icon="x" label={home.hide} onClick={() => void (hidden.value = 'hidden')} small />
        </span>
      </header>
      <ol>
        {steps.map(({ label, isDone, href }) => (
          <li key={label} class={isDone ? 'is-done' : undefined}>
            <Icon name={isDone ? 'circle-check' : 'chevron-right'} />
            {isDone ? <span>{label}</span> : <a href={href}>{label}</a>}
          </li>
        ))}
      </ol>
    </section>
  )
}

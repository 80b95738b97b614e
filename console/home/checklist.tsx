import { useCall } from '../api/query.ts'
import { home } from '../copy/home.ts'
import { remembered } from '../lib/remembered.ts'
import { to } from '../lib/router.ts'
import { IconButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Badge } from '../ui/note.tsx'
import './checklist.css'

const hidden = remembered('checklist')

type Step = { label: string; isDone: boolean; href: string }

/**
 * The way from an empty server to a second person who works with you; null: over or hidden, undefined: not yet known.
 */
export function useSteps(isWanted: boolean): readonly Step[] | null | undefined {
  const enabled = isWanted && !hidden.value
  const asked = [
    ['cell_create'],
    ['invite_create'],
    // Offered, or assigned by somebody; the server also gives roles.
    ['role_grant_offer_create', 'role_grant_create'],
    ['cell_grant_create'],
  ].map((event_types) =>
    useCall('audit_log_list', { event_types, outcome: 'success', limit: 20 }, { enabled, fresh: true }),
  )
  if (!enabled || asked.some(({ error }) => error)) return null
  if (asked.some(({ data }) => !data)) return undefined
  const [cell, invite, role, share] = asked.map(({ data }) =>
    data?.events.some(({ actor_id }) => actor_id !== null),
  )
  const steps = [
    { label: home.steps.server, isDone: true, href: to('/') },
    { label: home.steps.cell, isDone: cell === true, href: to('/cells', { dialog: 'new' }) },
    { label: home.steps.invite, isDone: invite === true, href: to('/invites', { dialog: 'invite' }) },
    { label: home.steps.role, isDone: role === true, href: to('/people') },
    { label: home.steps.share, isDone: share === true, href: to('/cells') },
  ]
  return steps.every(({ isDone }) => isDone) ? null : steps
}

export function Checklist({ steps }: { steps: readonly Step[] }) {
  const done = steps.filter(({ isDone }) => isDone).length
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

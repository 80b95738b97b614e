import { count, list } from './common.ts'

type Reason = {
  via: 'owner' | 'admin' | 'actor_grant' | 'role_grant' | 'public'
  role: string | null
  scope_id: string | null
  level: 'viewer' | 'editor' | null
}
type Everyone = {
  public: boolean
  admins: number
  grants: { grant: { role: string | null }; holders: number }[]
}

const place = (scope_id: string | null): string => (scope_id ? ` in ${scope_id.slice(0, 4)}` : '')

/** Why somebody may see a cell, or not. */
export const why = {
  who: 'Whose access',
  tiers: { view: 'sees', edit: 'edits', manage: 'manages' },
  no: 'may not see it',
  nearly: 'nearly',
  nothing: 'No rule lets them in.',
  everyone: 'Everyone',
  reason: ({ via, role, scope_id }: Reason): string => {
    if (via === 'owner') return 'They own it.'
    if (via === 'admin') return 'They are an admin.'
    if (via === 'public') return 'It is public.'
    if (via === 'actor_grant') return 'It is shared with them.'
    return `It is shared with everybody with ${role}${place(scope_id)}, which they hold.`
  },
  near: {
    scope_differs: 'They hold the role, but in another place than it is shared for.',
    role_expired: 'They held the role; it has expired.',
    role_revoked: 'They held the role; it was ended.',
    viewer_only: 'It is shared with them, but only to view.',
    system_cell: 'Nobody owns it: only admins manage it.',
    actor_removed: 'The actor was removed.',
  },
  summary: ({ public: isPublic, admins, grants }: Everyone): string => {
    const people = grants.filter(({ grant }) => grant.role === null).length
    const roles = grants.filter(({ grant }) => grant.role !== null)
    return `${list([
      ...(isPublic ? ['Everybody, because it is public'] : ['Its owner']),
      count(admins, 'admin'),
      ...(people > 0 ? [count(people, 'person', 'people')] : []),
      ...roles.map(({ grant, holders }) => `${count(holders, 'holder')} of ${grant.role}`),
    ])}.`
  },
}

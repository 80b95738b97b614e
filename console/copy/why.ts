import { count, list, most } from './common.ts'

type Reason = {
  via: 'owner' | 'admin' | 'actor_grant' | 'role_grant' | 'public'
  role: string | null
  scope_id: string | null
  level: 'viewer' | 'editor' | null
}
type Shared = { role: string | null; scope_id: string | null }
type Everyone = {
  public: boolean
  owner: string | null
  admins: number
  grants: { grant: Shared; holders: number }[]
}

const named = ({ role, scope_id }: Shared): string =>
  scope_id ? `${role} in ${scope_id.slice(0, 4)}` : `${role}`
const theRole = (shared?: Shared): string => (shared?.role ? `the role ${named(shared)}` : 'the role')

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
    return `It is shared with everybody with ${named({ role, scope_id })}, which they hold.`
  },
  held: 'Held until',
  without_end: 'it is ended',
  given_by: 'given by',
  the_server: 'the server',
  /** `shared`: the role that it is shared with, if known. */
  near: {
    scope_differs: (shared?: Shared) =>
      shared && !shared.scope_id
        ? `They hold ${shared.role} in one place; here it counts only if held everywhere.`
        : `They hold the role, but not for the place that it is shared for${shared ? `: ${named(shared)}` : ''}.`,
    role_expired: (shared?: Shared) => `They held ${theRole(shared)}; it has expired.`,
    role_revoked: (shared?: Shared) => `They held ${theRole(shared)}; it was ended.`,
    viewer_only: (shared?: Shared) =>
      `It is shared with ${shared?.role ? `everybody with ${named(shared)}` : 'them'}, but only to view.`,
    system_cell: () => 'It is shared with them to edit, but nobody owns it: only admins can edit it.',
    actor_removed: () => 'The actor was removed.',
  },
  summary: ({ public: isPublic, owner, admins, grants }: Everyone): string => {
    const people = grants.filter(({ grant }) => grant.role === null).length
    const roles = grants.filter(({ grant }) => grant.role !== null)
    return `${list([
      ...(isPublic ? ['Everybody, because it is public'] : owner ? ['Its owner'] : []),
      count(admins, 'admin'),
      ...(people > 0 ? [count(people, 'person', 'people')] : []),
      ...roles.map(({ grant, holders }) =>
        holders === 0 ? `nobody yet with ${named(grant)}` : `${most(holders, 'holder')} of ${named(grant)}`,
      ),
    ])}.`
  },
}

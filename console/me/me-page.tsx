import './me.css'
import type { ComponentType } from 'preact'
import { signedIn } from '../api/session.ts'
import { me } from '../copy/me.ts'
import { to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { Tabs, titleOf } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Profile } from './profile.tsx'
import { Roles } from './roles.tsx'
import { Security } from './security.tsx'
import { Sessions } from './sessions.tsx'
import { Tokens } from './tokens.tsx'

const parts: Record<string, { label: string; Part: ComponentType }> = {
  '': { label: me.tabs.profile, Part: Profile },
  security: { label: me.tabs.security, Part: Security },
  sessions: { label: me.tabs.sessions, Part: Sessions },
  tokens: { label: me.tabs.tokens, Part: Tokens },
  roles: { label: me.tabs.roles, Part: Roles },
}

export default function MePage({ params }: PageProps) {
  const tab = params.tab ?? ''
  const { Part } = parts[tab] ?? { Part: Profile }
  const tabs = Object.entries(parts).map(([name, { label }]) => ({
    href: to(name ? `/me/${name}` : '/me'),
    label,
    isCurrent: name === tab,
  }))
  return (
    <Page title={titleOf(me.title, tabs)} heading={me.title} tabs={<Tabs label={me.parts} tabs={tabs} />}>
      {signedIn.value && <Part />}
    </Page>
  )
}

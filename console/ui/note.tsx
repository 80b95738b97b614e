import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

export type NoteKind = 'info' | 'ok' | 'warn' | 'bad'
const icons: Record<NoteKind, IconName> = {
  info: 'info',
  ok: 'circle-check',
  warn: 'triangle-alert',
  bad: 'circle-x',
}

export const Note = ({
  kind = 'info',
  children,
  action,
}: {
  kind?: NoteKind
  children: ComponentChildren
  action?: ComponentChildren
}) => (
  <div class={`note is-${kind}`}>
    <Icon name={icons[kind]} />
    <div>{children}</div>
    {action && <span class="push">{action}</span>}
  </div>
)

export const Badge = ({
  kind = 'plain',
  children,
}: {
  kind?: 'plain' | 'accent' | 'ok' | 'warn' | 'bad'
  children: ComponentChildren
}) => <span class={`badge is-${kind}`}>{children}</span>

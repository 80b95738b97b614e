import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Icon } from './icon.tsx'
import { plain, Text } from './text.tsx'

/** One page: its heading gets the focus when it opens, so that screen readers start there. */
export function Page({
  title,
  heading,
  back,
  actions,
  about,
  tabs,
  children,
}: {
  /** The title of the browser's tab, and the heading if there is no `heading`. */
  title: string
  heading?: ComponentChildren
  back?: { href: string; label: string }
  actions?: ComponentChildren
  about?: ComponentChildren
  tabs?: ComponentChildren
  children: ComponentChildren
}) {
  const own = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // Nothing else in a tab keeps a character from reversing the text beside it.
    document.title = `${plain(title)} · ${words.product}`
  }, [title])
  useLayoutEffect(() => {
    if (document.querySelector('dialog[open]') === null) own.current?.focus({ preventScroll: true })
  }, [])
  return (
    <>
      <header class="page-head">
        {back && (
          <a class="page-back" href={back.href}>
            <Icon name="chevron-left" />
            <Text>{back.label}</Text>
          </a>
        )}
        <div class="page-title">
          <h1 ref={own} tabIndex={-1}>
            {heading ?? title}
          </h1>
          {actions && <div class="row push">{actions}</div>}
        </div>
        {about && <div class="page-about">{about}</div>}
        {tabs}
      </header>
      <div class="page-body">{children}</div>
    </>
  )
}

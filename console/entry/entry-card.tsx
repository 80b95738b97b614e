import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { loadSession, session } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { entry } from '../copy/entry.ts'
import { Button } from '../ui/button.tsx'
import { Logo } from '../ui/logo.tsx'
import { Recover } from './recover.tsx'
import { Setup } from './setup.tsx'
import { SignIn } from './sign-in.tsx'
import { SignUp } from './sign-up.tsx'

export type Step = 'sign_in' | 'sign_up' | 'setup' | 'recover' | 'unkept'
export type StepProps = { onDone(): void; onStep(step: Step): void }

/** The way in: one step after the other replaces the card. */
export function EntryCard({ first, onDone }: { first?: Step; onDone?: () => void }) {
  const isNew = session.value?.account === null && session.value.isNew
  const [step, go] = useState<Step>(first ?? (isNew ? 'setup' : 'sign_in'))
  const done = async (): Promise<void> => {
    await loadSession()
    if (session.value?.account === null) go('unkept')
    else onDone?.()
  }
  const props = { onDone: () => void done(), onStep: go }
  if (step === 'unkept') return <Unkept onStep={go} />
  if (step === 'setup') return <Setup {...props} />
  if (step === 'recover') return <Recover {...props} />
  return step === 'sign_up' ? <SignUp {...props} /> : <SignIn {...props} />
}

/** The server opened a session, but the browser did not keep its cookie. */
const Unkept = ({ onStep }: Pick<StepProps, 'onStep'>) => (
  <EntryFrame title={entry.unkept_title} about={isSecureContext ? entry.unkept_cookies : entry.unkept_http}>
    <Button kind="primary" wide onClick={() => onStep('sign_in')}>
      {words.try_again}
    </Button>
  </EntryFrame>
)

/** The name of the product, a card with a heading that takes the focus, and links below. */
export function EntryFrame({
  title,
  about,
  links,
  children,
}: {
  title: string
  about?: string
  links?: ComponentChildren
  children: ComponentChildren
}) {
  const own = useRef<HTMLDivElement>(null)
  useEffect(() => {
    document.title = `${title} · ${words.product}`
    const first =
      own.current?.querySelector<HTMLElement>('[data-autofocus]') ?? own.current?.querySelector('h1')
    first?.focus()
  }, [title])
  return (
    <div class="entry-card" ref={own}>
      <div class="entry-logo">
        <Logo />
        {words.product}
      </div>
      <div class="card">
        <div class="stack-tight">
          <h1 tabIndex={-1}>{title}</h1>
          {about && <p class="soft">{about}</p>}
        </div>
        {children}
      </div>
      {links && <div class="entry-links">{links}</div>}
    </div>
  )
}

/** Shows faults only after the form was sent; `reset`: another form takes its place. */
export function useChecked<F extends Record<string, string | null>>(
  faults: F,
): { faults: Partial<F>; check(): boolean; reset(): void } {
  const [isSent, send] = useState(false)
  return {
    faults: isSent ? faults : {},
    reset: () => send(false),
    check: () => {
      send(true)
      const isRight = Object.values(faults).every((one) => one === null)
      if (!isRight)
        requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
      return isRight
    },
  }
}

const username = /^[A-Za-z][A-Za-z0-9_-]{1,37}[A-Za-z0-9]$/
export const isUsername = (text: string): boolean => username.test(text)

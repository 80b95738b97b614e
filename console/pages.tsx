import './styles/tokens.css'
import './styles/base.css'
import './styles/ui.css'
import './styles/shell.css'
import './styles/print.css'
import { render } from 'preact'
import { server } from './api/server.ts'
import { loadSession, session, signedIn, unreachable } from './api/session.ts'
import { shell } from './copy/common.ts'
import { entry } from './copy/entry.ts'
import { EntryCard, EntryFrame, type Step } from './entry/entry-card.tsx'
import { fragment } from './lib/fragment.ts'
import { safeTarget } from './lib/router.ts'
import { ButtonLink } from './ui/button.tsx'
import { ErrorNote } from './ui/resource.tsx'

const steps: Record<string, Step> = {
  '/setup': 'setup',
  '/sign-in': 'sign_in',
  '/sign-up': 'sign_up',
  '/invite': 'sign_up',
}
const first = steps[location.pathname]

/** Where a signed-in person continues. */
const goOn = (): void => location.assign(safeTarget(fragment.to ?? null, server.home))

const isHome = server.home === location.pathname
/** Whoever is signed in goes on, unless an invite has just been opened. */
async function load(): Promise<void> {
  const isOpened = session.peek() === undefined
  await loadSession()
  if (signedIn.value && !isHome && !(isOpened && first === 'sign_up')) goOn()
}

/** The pages for people beside the console; each is one card. */
function Pages() {
  const state = session.value
  if (unreachable.value)
    return (
      <EntryFrame title={shell.unreachable_title}>
        <ErrorNote error={unreachable.value} onRetry={() => void load()} />
      </EntryFrame>
    )
  if (!state) return null
  if (state.account && first !== 'sign_up') return <SignedIn name={state.account.username} />
  const isNew = !state.account && state.isNew
  if (!first) return <Welcome isNew={isNew} />
  return <EntryCard first={first === 'setup' && !isNew ? 'sign_in' : first} onDone={goOn} />
}

const SignedIn = ({ name }: { name: string }) => (
  <EntryFrame title={entry.welcome_title} about={entry.signed_in_as(name)}>
    <ButtonLink href={safeTarget(fragment.to ?? null, server.home)} kind="primary" wide>
      {entry.go_on}
    </ButtonLink>
  </EntryFrame>
)

const Welcome = ({ isNew }: { isNew: boolean }) => (
  <EntryFrame
    title={entry.welcome_title}
    about={isNew ? `${entry.welcome} ${entry.welcome_new}` : entry.welcome}
  >
    {isNew ? (
      <ButtonLink href="/setup" kind="primary" wide>
        {entry.setup_title}
      </ButtonLink>
    ) : (
      <>
        <ButtonLink href="/sign-in" kind="primary" wide>
          {entry.sign_in}
        </ButtonLink>
        {server.features.signup && (
          <ButtonLink href="/sign-up" wide>
            {entry.no_account}
          </ButtonLink>
        )}
      </>
    )}
  </EntryFrame>
)

void load()
render(
  <main class="alone">
    <Pages />
  </main>,
  document.getElementById('root') as HTMLElement,
)

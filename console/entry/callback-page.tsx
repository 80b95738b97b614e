import { useEffect } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { server } from '../api/server.ts'
import { signedIn, tellTabs } from '../api/session.ts'
import { entry } from '../copy/entry.ts'
import { explain } from '../copy/errors.ts'
import { returned } from '../lib/fragment.ts'
import { to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Skeleton } from '../ui/resource.tsx'
import { EntryFrame } from './entry-card.tsx'
import { SecondStepCard, secondStepOf } from './second-step.tsx'

/**
 * Where a provider leads back to. A person who was already signed in went there to link an identity, or to prove again
 * who they are.
 */
export default function CallbackPage({ params: { provider = '' } }: PageProps) {
  const href = signedIn.value ? to('/me/security') : to('/')
  const finish = useRun(() => client.account.oidc_finish({ provider, query: returned }))
  const done = (): void => {
    tellTabs('signed_in')
    location.replace(signedIn.peek() ? href : server.home)
  }
  useEffect(() => {
    // The answer of the provider works once: after a reload there is nothing to finish.
    if (returned) void finish.send(undefined).then((result) => result && done())
    else location.replace(href)
  }, [])
  const second = secondStepOf(finish.error)
  if (second) return <SecondStepCard {...second} onDone={done} onAgain={() => location.replace(href)} />
  return (
    <EntryFrame title={finish.error ? entry.callback_refused : entry.callback_title}>
      {finish.error ? (
        <>
          <Fault text={explain(finish.error)} />
          <ButtonLink href={href} kind="primary" wide>
            {entry.callback_back}
          </ButtonLink>
        </>
      ) : (
        <Skeleton lines={2} />
      )}
    </EntryFrame>
  )
}

import type { ComponentChildren } from 'preact'
import { connection, reconnect } from './api/live.ts'
import { mustEnrol } from './api/session.ts'
import { shell } from './copy/common.ts'
import { security } from './copy/security.ts'
import { isOutdated } from './lib/new-build.ts'
import { to } from './lib/router.ts'
import { Button, ButtonLink, offline } from './ui/button.tsx'
import { Note } from './ui/note.tsx'

/** Messages that concern every page: no connection, one window too many, another build, or a second factor to add. */
export function Bars() {
  const state = connection.value
  if (mustEnrol.value)
    return (
      <Bar
        text={security.required}
        action={
          <ButtonLink small href={to('/me/security')}>
            {security.add_now}
          </ButtonLink>
        }
      />
    )
  if (state === 'lost' && offline.value)
    return <Bar text={shell.offline} action={<Reconnect verb={shell.try_now} />} />
  if (state === 'too_many_sockets')
    return <Bar text={shell.too_many_windows} action={<Reconnect verb={shell.reconnect} />} />
  if (isOutdated.value)
    return (
      <Bar
        text={shell.new_version}
        action={
          <Button small onClick={() => location.reload()}>
            {shell.reload}
          </Button>
        }
      />
    )
  return null
}

const Bar = ({ text, action }: { text: string; action: ComponentChildren }) => (
  <div class="top-bar" role="status">
    <Note kind="warn" action={action}>
      {text}
    </Note>
  </div>
)

const Reconnect = ({ verb }: { verb: string }) => (
  <Button small onClick={reconnect}>
    {verb}
  </Button>
)

import { connection, reconnect } from './api/live.ts'
import { mustEnrol } from './api/session.ts'
import { shell } from './copy/common.ts'
import { security } from './copy/security.ts'
import { to } from './lib/router.ts'
import { Button, ButtonLink, offline } from './ui/button.tsx'
import { Note } from './ui/note.tsx'

/** Messages that concern every page: no connection, one window too many, or a second factor to add. */
export function Bars() {
  const state = connection.value
  if (mustEnrol.value)
    return (
      <div class="top-bar" role="status">
        <Note
          kind="warn"
          action={
            <ButtonLink small href={to('/me/security')}>
              {security.add_now}
            </ButtonLink>
          }
        >
          {security.required}
        </Note>
      </div>
    )
  if (state === 'lost' && offline.value)
    return (
      <div class="top-bar" role="status">
        <Note
          kind="warn"
          action={
            <Button small onClick={reconnect}>
              {shell.try_now}
            </Button>
          }
        >
          {shell.offline}
        </Note>
      </div>
    )
  if (state === 'too_many_sockets')
    return (
      <div class="top-bar" role="status">
        <Note
          kind="warn"
          action={
            <Button small onClick={reconnect}>
              {shell.reconnect}
            </Button>
          }
        >
          {shell.too_many_windows}
        </Note>
      </div>
    )
  return null
}

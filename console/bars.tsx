import { connection, reconnect } from './api/live.ts'
import { shell } from './copy/common.ts'
import { Button } from './ui/button.tsx'
import { Note } from './ui/note.tsx'

/** What concerns every page: no connection, or one window too many. */
export function Bars() {
  const state = connection.value
  if (state === 'lost')
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

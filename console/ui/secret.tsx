import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { once, words } from '../copy/common.ts'
import { leaveGuard } from '../lib/router.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Checkbox } from './field.tsx'
import { copyText } from './id.tsx'
import { Note } from './note.tsx'

type Shown = { title: string; secret: string }
const waiting = signal<readonly Shown[]>([])

/** Covers whatever page is open by then: the dialog that asked for the secret may have been closed. */
export const showSecret = (title: string, secret: string): void => {
  waiting.value = [...waiting.value, { title, secret }]
}
export const forgetSecrets = (): void => void (waiting.value = [])

/** Shows secrets one after the other. */
export function Secrets() {
  const [first, ...others] = waiting.value
  return first && <Secret key={first.secret} {...first} onClose={() => void (waiting.value = others)} />
}

/** Shown once, and stored nowhere: asks before it is left unsaved. */
function Secret({ title, secret, onClose }: Shown & { onClose(): void }) {
  const [isStored, setStored] = useState(false)
  const [isAsking, ask] = useState(false)
  useEffect(() => {
    if (isStored) return
    const here = location.href
    const { back } = leaveGuard
    leaveGuard.back = () => {
      history.pushState({}, '', here)
      ask(true)
    }
    const stay = (event: Event): void => event.preventDefault()
    addEventListener('beforeunload', stay)
    return () => {
      leaveGuard.back = back
      removeEventListener('beforeunload', stay)
    }
  }, [isStored])
  return (
    <Dialog
      title={isAsking ? once.leave_question : title}
      size="full"
      canDismiss={false}
      onClose={() => (isStored ? onClose() : ask(true))}
      foot={
        isAsking ? (
          <>
            <Button kind="sure" onClick={onClose}>
              {once.close_anyway}
            </Button>
            <Button kind="primary" onClick={() => ask(false)}>
              {once.go_back}
            </Button>
          </>
        ) : (
          <Button kind="primary" onClick={onClose} disabled={!isStored && once.stored_first}>
            {words.done}
          </Button>
        )
      }
    >
      <Note kind="warn">{isAsking ? once.leave_about : once.shown_once}</Note>
      {!isAsking && (
        <>
          <div class="secret">
            <code>{secret}</code>
            <Button icon="copy" onClick={() => void copyText(secret)} autofocus>
              {words.copy}
            </Button>
          </div>
          <Checkbox label={once.stored} checked={isStored} onChange={setStored} />
        </>
      )}
    </Dialog>
  )
}

import { useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { me } from '../copy/me.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox } from '../ui/field.tsx'
import { copyText } from '../ui/id.tsx'
import { Note } from '../ui/note.tsx'

/** Shown once, and kept nowhere: leaving before it is stored is asked about. */
export function Secret({ title, secret, onClose }: { title: string; secret: string; onClose(): void }) {
  const [isStored, setStored] = useState(false)
  const [isAsking, ask] = useState(false)
  return (
    <Dialog
      title={isAsking ? me.leave_question : title}
      size="full"
      canDismiss={false}
      onClose={() => (isStored ? onClose() : ask(true))}
      foot={
        isAsking ? (
          <>
            <Button kind="sure" onClick={onClose}>
              {me.close_anyway}
            </Button>
            <Button kind="primary" onClick={() => ask(false)}>
              {me.go_back}
            </Button>
          </>
        ) : (
          <Button kind="primary" onClick={onClose} disabled={!isStored && me.stored_first}>
            {words.done}
          </Button>
        )
      }
    >
      <Note kind="warn">{isAsking ? me.leave_about : me.shown_once}</Note>
      {!isAsking && (
        <>
          <div class="secret">
            <code>{secret}</code>
            <Button icon="copy" onClick={() => void copyText(secret)} autofocus>
              {words.copy}
            </Button>
          </div>
          <Checkbox label={me.stored} checked={isStored} onChange={setStored} />
        </>
      )}
    </Dialog>
  )
}

import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { useSend } from '../api/send.ts'
import { server } from '../api/server.ts'
import { words } from '../copy/common.ts'
import { invites } from '../copy/invites.ts'
import { useDraft } from '../lib/draft.ts'
import { Button } from '../ui/button.tsx'
import { EndField, endIn, endOf } from '../ui/date-field.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { copyText } from '../ui/id.tsx'
import { Note } from '../ui/note.tsx'
import { showSecret } from '../ui/secret.tsx'
import { toast } from '../ui/toast.tsx'

/** The link only fills in the form of the page; it proves nothing. */
export function linkOf({ email, username }: { email: string | null; username: string | null }): string {
  const filled = new URLSearchParams()
  if (username) filled.set('u', username)
  if (email) filled.set('e', email)
  return `${location.origin}${server.features.pages ? '/invite' : '/admin'}#${filled}`
}

export function CreateInvite({ onClose }: { onClose(): void }) {
  const { form, set, isDirty, drop } = useDraft('invite', { email: '', username: '', end: endIn('30') })
  const { email, username, end } = form
  const [isSent, setSent] = useState(false)
  const [made, setMade] = useState<Output<'invite_create'> | null>(null)
  const create = useSend('invite_create', {
    spoils: ['invite_list'],
    done: ({ link, invite: { email } }) => {
      if (link) showSecret(invites.link_ready, link)
      else toast(server.features.mail && email ? invites.sent(email) : invites.created)
    },
  })
  const isEmpty = !email.trim() && !username.trim()
  const submit = async (): Promise<void> => {
    setSent(true)
    const expires_at = endOf(end)
    if (isEmpty || expires_at === undefined) return
    const result = await create.send({
      email: email.trim() || null,
      username: username.trim() || null,
      expires_at,
    })
    if (!result) return
    drop()
    if (result.link === null && server.invite_claim === 'match') setMade(result)
    else onClose()
  }
  if (made)
    return (
      <Dialog
        title={invites.is_ready}
        onClose={onClose}
        foot={
          <Button kind="primary" onClick={onClose} autofocus>
            {words.done}
          </Button>
        }
      >
        <code>{linkOf(made.invite)}</code>
        <div class="row">
          <Button icon="copy" onClick={() => void copyText(linkOf(made.invite))}>
            {invites.copy_link}
          </Button>
          <Button icon="copy" onClick={() => void copyText(invites.message_text(linkOf(made.invite)))}>
            {invites.message}
          </Button>
        </div>
        <Note>{invites.no_secret}</Note>
      </Dialog>
    )
  return (
    <FormDialog
      title={invites.new_title}
      size="full"
      onClose={onClose}
      isDirty={isDirty}
      verb={invites.create}
      of={create}
      onSubmit={() => void submit()}
    >
      <Field
        label={invites.email}
        type="email"
        value={email}
        onInput={(email) => set({ email })}
        autocomplete="off"
        autofocus
        fault={isSent && isEmpty ? invites.one_of : null}
      />
      <Field
        label={invites.username}
        value={username}
        onInput={(username) => set({ username })}
        autocomplete="off"
      />
      <EndField value={end} onChange={(end) => set({ end })} isSent={isSent} />
    </FormDialog>
  )
}

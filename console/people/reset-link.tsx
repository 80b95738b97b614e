import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { personSignIn } from '../copy/person-sign-in.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Choices } from '../ui/field.tsx'
import { showSecret } from '../ui/secret.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './person-page.tsx'

type Way = keyof typeof personSignIn.ways
const ways = (['mailed', 'revealed'] as const).map((value) => ({ value, ...personSignIn.ways[value] }))

/** For somebody who has forgotten the password. */
export function ResetLink({ person: { account }, onClose }: PartProps & { onClose(): void }) {
  const [way, setWay] = useState<Way>(account.email ? 'mailed' : 'revealed')
  const create = useSend('admin_account_reset_link_create', {
    spoils: ['admin_ticket_list'],
    done: ({ link }) => (link ? showSecret(personSignIn.link_ready, link) : toast(personSignIn.link_sent)),
  })
  const submit = async (): Promise<void> => {
    if (await create.send({ account_id: account.id, reveal: way === 'revealed' })) onClose()
  }
  return (
    <Dialog
      title={personSignIn.reset_title(account.username)}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={create.isBusy} wait={create.wait}>
            {personSignIn.reset}
          </Button>
        </>
      }
    >
      <p>{personSignIn.reset_about(account.username)}</p>
      <Fault text={create.error && explain(create.error)} />
      <Choices label={personSignIn.way} value={way} options={ways} onChange={setWay} />
    </Dialog>
  )
}

import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { personSignIn } from '../copy/person-sign-in.ts'
import { Choices } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
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
    <FormDialog
      title={personSignIn.reset_title(account.username)}
      whom={account}
      onClose={onClose}
      about={<p>{personSignIn.reset_about(account.username)}</p>}
      verb={personSignIn.reset}
      of={create}
      onSubmit={() => void submit()}
    >
      <Choices label={personSignIn.way} value={way} options={ways} onChange={setWay} />
    </FormDialog>
  )
}

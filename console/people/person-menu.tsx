import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { people } from '../copy/people.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { Menu } from '../ui/menu.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './person-page.tsx'

type Open = 'sign_out' | 'tokens' | 'delete' | null
const spoils = ['admin_account_get', 'admin_account_list', 'admin_session_list', 'admin_token_list'] as const

/** What ends something of a person, each with its consequences counted before. */
export function PersonMenu({ person }: PartProps) {
  const [open, setOpen] = useState<Open>(null)
  const close = (): void => setOpen(null)
  return (
    <>
      <Menu
        label={words.more_actions}
        items={[
          { label: people.sign_out, onClick: () => setOpen('sign_out') },
          { label: people.revoke_tokens, onClick: () => setOpen('tokens') },
          { label: people.delete, danger: true, onClick: () => setOpen('delete') },
        ]}
      />
      {open === 'sign_out' && <SignOut person={person} onClose={close} />}
      {open === 'tokens' && <RevokeTokens person={person} onClose={close} />}
      {open === 'delete' && <Delete person={person} onClose={close} />}
    </>
  )
}

type Props = PartProps & { onClose(): void }

function SignOut({ person: { account, counts }, onClose }: Props) {
  const end = useSend('admin_session_revoke_all', { spoils })
  const confirm = async (): Promise<void> => {
    if (!(await end.send({ account_id: account.id }))) return
    onClose()
    toast(people.signed_out)
  }
  return (
    <Confirm
      title={people.sign_out_question(account.username)}
      verb={people.sign_out}
      onConfirm={() => void confirm()}
      onClose={onClose}
      isBusy={end.isBusy}
      fault={end.error && explain(end.error)}
    >
      <p>{people.sign_out_about(counts.sessions)}</p>
    </Confirm>
  )
}

function RevokeTokens({ person: { account, counts }, onClose }: Props) {
  const end = useSend('admin_token_revoke_all', { spoils })
  const confirm = async (): Promise<void> => {
    if (!(await end.send({ account_id: account.id }))) return
    onClose()
    toast(people.tokens_revoked)
  }
  return (
    <Confirm
      title={people.revoke_tokens_question(account.username)}
      verb={people.revoke_tokens}
      onConfirm={() => void confirm()}
      onClose={onClose}
      isBusy={end.isBusy}
      fault={end.error && explain(end.error)}
    >
      <p>{people.revoke_tokens_about(counts.tokens)}</p>
    </Confirm>
  )
}

function Delete({ person: { account, counts }, onClose }: Props) {
  const [typed, setTyped] = useState('')
  const remove = useSend('account_delete', { spoils })
  const name = account.username
  const submit = async (): Promise<void> => {
    if (typed !== name || !(await remove.send({ account_id: account.id }))) return
    onClose()
    toast(people.account_deleted(name))
  }
  return (
    <Dialog
      title={people.delete_question(name)}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose} autofocus>
            {words.cancel}
          </Button>
          <Button
            type="submit"
            kind="sure"
            isBusy={remove.isBusy}
            disabled={typed !== name && people.delete_type(name)}
          >
            {people.delete_verb(name)}
          </Button>
        </>
      }
    >
      <p>{people.delete_about(name, counts)}</p>
      <Fault text={remove.error && explain(remove.error)} />
      <Field label={people.delete_type(name)} value={typed} onInput={setTyped} autocomplete="off" />
    </Dialog>
  )
}

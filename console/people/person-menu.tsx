import { useCount } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { server } from '../api/server.ts'
import { deletion, words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { people } from '../copy/people.ts'
import { place, setQuery } from '../lib/router.ts'
import { Counted, notCounted } from '../ui/counted.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Menu } from '../ui/menu.tsx'
import { toast } from '../ui/toast.tsx'
import { EditEmail, EditUsername } from './edit-person.tsx'
import { isPrivileged, type PartProps } from './person-page.tsx'

type Open = 'sign_out' | 'tokens' | 'username' | 'email' | 'delete' | null
const spoils = ['admin_account_get', 'admin_account_list', 'admin_session_list', 'admin_token_list'] as const

/** Actions that change or end something of a person, each with its consequences counted first. */
export function PersonMenu({ person }: PartProps) {
  // In the address, so that what is typed is kept if others take the page away.
  const open = place.value.query.get('dialog')
  const setOpen = (dialog: Open): void => setQuery({ dialog })
  const close = (): void => setOpen(null)
  const disabled = isPrivileged(person) && explain({ reason: 'privileged_target', data: {}, status: 403 })
  return (
    <>
      <Menu
        label={words.more_actions}
        items={[
          ...(server.features.username_set
            ? [{ label: people.change_username, disabled, onClick: () => setOpen('username') }]
            : []),
          { label: people.change_email, disabled, onClick: () => setOpen('email') },
          { label: people.sign_out, onClick: () => setOpen('sign_out') },
          { label: people.revoke_tokens, onClick: () => setOpen('tokens') },
          { label: people.delete, danger: true, begins: true, onClick: () => setOpen('delete') },
        ]}
      />
      {open === 'username' && <EditUsername person={person} onClose={close} />}
      {open === 'email' && <EditEmail person={person} onClose={close} />}
      {open === 'sign_out' && <SignOut person={person} onClose={close} />}
      {open === 'tokens' && <RevokeTokens person={person} onClose={close} />}
      {open === 'delete' && <Delete person={person} onClose={close} />}
    </>
  )
}

type Props = PartProps & { onClose(): void }

function SignOut({ person: { account, counts }, onClose }: Props) {
  const end = useSend('admin_session_revoke_all', { spoils, done: () => toast(people.signed_out) })
  const confirm = async (): Promise<void> => {
    if (await end.send({ account_id: account.id })) onClose()
  }
  return (
    <Confirm
      title={people.sign_out_question(account.username)}
      whom={account}
      verb={people.sign_out}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={end}
    >
      <p>{people.sign_out_about(counts.sessions)}</p>
    </Confirm>
  )
}

function RevokeTokens({ person: { account, counts }, onClose }: Props) {
  const end = useSend('admin_token_revoke_all', { spoils, done: () => toast(people.tokens_revoked) })
  const confirm = async (): Promise<void> => {
    if (await end.send({ account_id: account.id })) onClose()
  }
  return (
    <Confirm
      title={people.revoke_tokens_question(account.username)}
      whom={account}
      verb={people.revoke_tokens}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={end}
    >
      <p>{people.revoke_tokens_about(counts.tokens)}</p>
    </Confirm>
  )
}

function Delete({ person: { account }, onClose }: Props) {
  const preview = useCount('account_delete_preview', { account_id: account.id })
  const remove = useSend('account_delete', {
    spoils,
    done: () => toast(people.account_deleted(account.username)),
  })
  const refusal = preview.data?.refusal
  const why = refusal ? explain({ reason: refusal, data: {}, status: 409 }) : null
  const name = account.username
  const confirm = async (): Promise<void> => {
    if (await remove.send({ account_id: account.id })) onClose()
  }
  return (
    <Confirm
      name={why ? null : name}
      title={people.delete_question(name)}
      whom={account}
      verb={people.delete_verb(name)}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={remove}
      disabled={why ?? notCounted(preview)}
    >
      <Counted of={preview}>{({ counts }) => why ?? deletion.counted(name, counts)}</Counted>
    </Confirm>
  )
}

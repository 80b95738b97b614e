import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { people } from '../copy/people.ts'
import { AskText } from '../ui/ask-text.tsx'
import { Checkbox } from '../ui/field.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './person-page.tsx'

type Props = PartProps & { onClose(): void }
const spoils = ['admin_account_get', 'admin_account_list', 'actor_lookup'] as const

export function EditUsername({ person: { account }, onClose }: Props) {
  const change = useSend('admin_account_username_set', { spoils, done: () => toast(people.username_changed) })
  const submit = async (username: string): Promise<void> => {
    if (await change.send({ account_id: account.id, username })) onClose()
  }
  return (
    <AskText
      title={people.change_username}
      whom={account}
      about={people.username_about(account.username)}
      label={people.name}
      verb={people.change_username}
      initial={account.username}
      of={change}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

export function EditEmail({ person: { account }, onClose }: Props) {
  // Whether the current address is verified says nothing about another one.
  const [isPresent, setPresent] = useState(true)
  const [chosen, setChosen] = useState<boolean>()
  const verified = chosen ?? (isPresent && account.email_verified)
  const change = useSend('admin_account_email_set', { spoils, done: () => toast(people.email_changed) })
  const submit = async (email: string): Promise<void> => {
    if (await change.send({ account_id: account.id, email: email || null, verified })) onClose()
  }
  return (
    <AskText
      title={people.change_email}
      whom={account}
      label={people.email}
      hint={people.email_hint}
      type="email"
      verb={people.change_email}
      initial={account.email ?? ''}
      of={change}
      onSubmit={(text) => void submit(text)}
      onChange={(text) => setPresent(text.trim() === (account.email ?? ''))}
      onClose={onClose}
    >
      <Checkbox label={people.email_verified} checked={verified} onChange={setChosen} />
    </AskText>
  )
}

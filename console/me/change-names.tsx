import { useSend } from '../api/send.ts'
import { loadSession, type Session, signedIn } from '../api/session.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { AskText } from '../ui/ask-text.tsx'
import { toast } from '../ui/toast.tsx'

type Props = { onClose(): void }
const faultOf = ({
  isBusy,
  wait,
  error,
}: {
  isBusy: boolean
  wait: number
  error: Parameters<typeof explain>[0] | null
}) => ({
  isBusy,
  wait,
  fault: error && explain(error),
})

export function ChangeUsername({ onClose }: Props) {
  const { account } = signedIn.value as Session
  const change = useSend('account_username_change')
  const submit = async (username: string): Promise<void> => {
    if (!(await change.send({ username }))) return
    if (change.isHere()) onClose()
    toast(me.username_changed)
    void loadSession()
  }
  return (
    <AskText
      title={me.change_username}
      about={me.username_about}
      label={me.username}
      verb={me.change_username}
      initial={account.username}
      autocomplete="username"
      {...faultOf(change)}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

export function ChangeActorName({ onClose }: Props) {
  const { actor } = signedIn.value as Session
  const change = useSend('actor_rename', { spoils: ['actor_lookup'] })
  const submit = async (name: string): Promise<void> => {
    if (!(await change.send({ name }))) return
    if (change.isHere()) onClose()
    toast(me.name_changed)
    void loadSession()
  }
  return (
    <AskText
      title={me.change_name}
      about={me.name_about}
      label={me.name}
      verb={me.change_name}
      initial={actor?.name ?? ''}
      {...faultOf(change)}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

/** A new address counts once its link is opened; none counts at once. */
export function ChangeEmail({ onClose }: Props) {
  const { account } = signedIn.value as Session
  const change = useSend('account_email_change')
  const submit = async (email: string): Promise<void> => {
    if (!(await change.send({ email: email || null }))) return
    if (change.isHere()) onClose()
    toast(email ? me.email_pending(email) : me.email_removed)
    void loadSession()
  }
  return (
    <AskText
      title={me.change_email}
      about={me.email_about}
      label={me.email}
      hint={account.email && me.email_hint}
      type="email"
      verb={me.change_email}
      initial={account.email ?? ''}
      autocomplete="email"
      {...faultOf(change)}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

import { useSend } from '../api/send.ts'
import { loadSession, type Session, signedIn } from '../api/session.ts'
import { me } from '../copy/me.ts'
import { AskText } from '../ui/ask-text.tsx'
import { toast } from '../ui/toast.tsx'

type Props = { onClose(): void }

export function ChangeUsername({ onClose }: Props) {
  const { account } = signedIn.value as Session
  const change = useSend('account_username_change', {
    spoils: ['actor_lookup'],
    done: () => {
      toast(me.username_changed)
      void loadSession()
    },
  })
  const submit = async (username: string): Promise<void> => {
    if (await change.send({ username })) onClose()
  }
  return (
    <AskText
      title={me.change_username}
      about={me.username_about}
      label={me.username}
      verb={me.change_username}
      initial={account.username}
      autocomplete="username"
      of={change}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

export function ChangeActorName({ onClose }: Props) {
  const { actor } = signedIn.value as Session
  const change = useSend('actor_rename', {
    spoils: ['actor_lookup'],
    done: () => {
      toast(me.name_changed)
      void loadSession()
    },
  })
  const submit = async (name: string): Promise<void> => {
    if (await change.send({ name })) onClose()
  }
  return (
    <AskText
      title={me.change_name}
      about={me.name_about}
      label={me.name}
      verb={me.change_name}
      initial={actor?.name ?? ''}
      of={change}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

/** A new address counts once its link is opened; removing the address counts at once. */
export function ChangeEmail({ onClose }: Props) {
  const { account } = signedIn.value as Session
  const change = useSend('account_email_change', {
    done: (_, { email }) => {
      toast(email ? me.email_pending(email) : me.email_removed)
      void loadSession()
    },
  })
  const submit = async (email: string): Promise<void> => {
    if (await change.send({ email: email || null })) onClose()
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
      of={change}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

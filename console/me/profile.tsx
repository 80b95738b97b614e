import { useState } from 'preact/hooks'
import { type Session, signedIn } from '../api/session.ts'
import { me } from '../copy/me.ts'
import { Button } from '../ui/button.tsx'
import { Facts } from '../ui/facts.tsx'
import { Id } from '../ui/id.tsx'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { Words } from '../ui/words.tsx'
import { ChangePassword } from './change-password.tsx'
import { DeleteAccount } from './delete-account.tsx'

export function Profile() {
  const { account, actor } = signedIn.value as Session
  const [open, setOpen] = useState<'password' | 'delete' | null>(null)
  return (
    <>
      <section class="section">
        <Facts
          of={[
            [me.username, account.username],
            [me.email, <Email key="email" of={account} />],
            actor && [me.actor, <Text key="actor">{actor.name}</Text>],
            [me.created, <Time key="created" at={account.created_at} />],
            [me.account_id, <Id key="id" id={account.id} />],
            actor && [me.actor_id, <Id key="actor-id" id={actor.id} />],
          ]}
        />
        <p class="soft small">
          <Words>{me.operator}</Words>
        </p>
      </section>
      <section class="section">
        <h2>{me.password_title}</h2>
        <p class="soft">{me.password_about}</p>
        <div>
          <Button onClick={() => setOpen('password')}>{me.change_password}</Button>
        </div>
      </section>
      <section class="section">
        <h2>{me.delete_title}</h2>
        <p class="soft">{me.delete_about}</p>
        <div>
          <Button kind="danger" onClick={() => setOpen('delete')}>
            {me.delete}
          </Button>
        </div>
      </section>
      {open === 'password' && <ChangePassword onClose={() => setOpen(null)} />}
      {open === 'delete' && <DeleteAccount onClose={() => setOpen(null)} />}
    </>
  )
}

const Email = ({ of: { email, email_verified } }: { of: Session['account'] }) =>
  email === null ? (
    <span class="soft">{me.no_email}</span>
  ) : (
    <span class="row">
      <Text>{email}</Text>
      <Badge kind={email_verified ? 'ok' : 'warn'}>{email_verified ? me.verified : me.not_verified}</Badge>
    </span>
  )

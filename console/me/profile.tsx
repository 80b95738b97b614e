import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { server } from '../api/server.ts'
import { type Session, signedIn } from '../api/session.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { place, setQuery } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Facts } from '../ui/facts.tsx'
import { Fault } from '../ui/fault.tsx'
import { Id } from '../ui/id.tsx'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { Words } from '../ui/words.tsx'
import { ChangeActorName, ChangeEmail, ChangeUsername } from './change-names.tsx'
import { ChangePassword } from './change-password.tsx'
import { DeleteAccount } from './delete-account.tsx'

type Open = 'username' | 'name' | 'email' | null

export function Profile() {
  const { features } = server
  const verify = useSend('account_email_verify_send', {
    done: ({ sent }) => toast(sent ? me.verify_sent : me.verify_not_needed),
  })
  const { account, actor } = signedIn.value as Session
  const hasNone = useCall('account_sign_in_get', {}).data?.password === false
  // In the address, so that what is typed is kept if the session ends.
  const open = place.value.query.get('dialog')
  const setOpen = (dialog: Open): void => setQuery({ dialog })
  const close = (): void => setOpen(null)
  // Not in the address: the account that signs in next is not asked about its password or its end.
  const [asked, ask] = useState<'password' | 'delete' | null>(null)
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
        <div class="row">
          {features.username_change && (
            <Button onClick={() => setOpen('username')}>{me.change_username}</Button>
          )}
          {features.actor_rename && actor && (
            <Button onClick={() => setOpen('name')}>{me.change_name}</Button>
          )}
          {features.mail && <Button onClick={() => setOpen('email')}>{me.change_email}</Button>}
          {features.mail && account.email !== null && !account.email_verified && (
            <Button isBusy={verify.isBusy} wait={verify.wait} onClick={() => void verify.send({})}>
              {me.verify_email}
            </Button>
          )}
        </div>
        <Fault text={verify.error && explain(verify.error)} />
        {!(features.username_change && features.mail) && (
          <p class="soft small">
            <Words>{me.operator}</Words>
          </p>
        )}
      </section>
      <section class="section">
        <h2>{me.password_title}</h2>
        <p class="soft">{me.password_about(null)}</p>
        <div>
          <Button onClick={() => ask('password')}>{hasNone ? me.set_password : me.change_password}</Button>
        </div>
      </section>
      <section class="section">
        <h2>{me.delete_title}</h2>
        <p class="soft">{me.delete_about}</p>
        <div>
          <Button kind="danger" onClick={() => ask('delete')}>
            {me.delete}
          </Button>
        </div>
      </section>
      {open === 'username' && features.username_change && <ChangeUsername onClose={close} />}
      {open === 'name' && features.actor_rename && actor && <ChangeActorName onClose={close} />}
      {open === 'email' && features.mail && <ChangeEmail onClose={close} />}
      {asked === 'password' && <ChangePassword isFirst={hasNone} onClose={() => ask(null)} />}
      {asked === 'delete' && <DeleteAccount onClose={() => ask(null)} />}
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

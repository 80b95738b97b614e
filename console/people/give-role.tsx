import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { type Session, signedIn } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { people } from '../copy/people.ts'
import { shortTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Choices, Field, SelectField, TextArea } from '../ui/field.tsx'
import { Note } from '../ui/note.tsx'
import { toast } from '../ui/toast.tsx'
import { Words } from '../ui/words.tsx'
import type { Person } from './person-page.tsx'

type Days = keyof typeof people.lifetimes
type AnswerDays = keyof typeof people.answer_days
const optionsOf = <K extends string>(texts: Record<K, string>) =>
  (Object.keys(texts) as K[]).map((value) => ({ value, label: texts[value] }))
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const inDays = (days: Days): string | null =>
  days === 'never' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString()

/** Offers a role, so that the person decides, or assigns it at once. */
export function GiveRole({ person, onClose }: { person: Person; onClose(): void }) {
  const { account, actors } = person
  const name = account.username
  const own = signedIn.value as Session
  const roles = useCall('admin_account_list', { limit: 1 }).data?.grantable_roles ?? []
  const [role, setRole] = useState('')
  const [where, setWhere] = useState<'everywhere' | 'scope'>('everywhere')
  const [kind, setKind] = useState('')
  const [scopeId, setScopeId] = useState('')
  const [days, setDays] = useState<Days>('never')
  const [how, setHow] = useState<'offer' | 'assign'>('offer')
  const [answer, setAnswer] = useState<AnswerDays>('30')
  const [note, setNote] = useState('')
  const [actorId, setActorId] = useState(actors.length === 1 ? (actors[0]?.id ?? '') : '')
  const [isSent, setSent] = useState(false)
  const spoils = ['admin_account_get', 'admin_account_list', 'role_grant_offer_history'] as const
  const offer = useSend('role_grant_offer_create', { spoils })
  const assign = useSend('role_grant_assign', { spoils })

  const isScoped = where === 'scope' && role !== 'admin'
  const isPlaced = !isScoped || (kind.trim() !== '' && uuid.test(scopeId.trim()))
  const isHeld = own.role_grants.some(
    (one) => one.role === role && (one.scope_id === null || (isScoped && one.scope_id === scopeId.trim())),
  )
  const mode = role && !isHeld ? 'assign' : how
  const present = actors
    .flatMap(({ role_grants }) => role_grants)
    .find((one) => one.role === role && one.scope_id === (isScoped ? scopeId.trim() : null))

  const submit = async (): Promise<void> => {
    setSent(true)
    if (!role || !isPlaced) return
    const scope = isScoped ? { scope_kind: kind.trim(), scope_id: scopeId.trim() } : {}
    const sent = { to_account_id: account.id, role, ...(actorId && { to_actor_id: actorId }), ...scope }
    const isDone =
      mode === 'offer'
        ? await offer.send({
            ...sent,
            message: note.trim() || null,
            expires_in_days: Number(answer),
            grant_expires_at: inDays(days),
          })
        : await assign.send({ ...sent, expires_at: inDays(days) })
    if (!isDone) return
    onClose()
    toast(mode === 'offer' ? people.was_offered(role, name) : people.was_assigned(role, name))
  }
  const sending = mode === 'offer' ? offer : assign
  return (
    <Dialog
      title={people.give_to(name)}
      size="full"
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={sending.isBusy} wait={sending.wait}>
            {mode === 'offer' ? people.offer_verb(role) : people.assign_verb(role)}
          </Button>
        </>
      }
    >
      <Fault text={sending.error && explain(sending.error)} />
      <SelectField
        label={people.which_role}
        value={role}
        options={[{ value: '', label: people.choose }, ...roles.map((value) => ({ value, label: value }))]}
        onChange={setRole}
        hint={<Words>{people.no_keeper}</Words>}
        fault={isSent && !role ? people.role_missing : null}
      />
      {actors.length > 1 && (
        <SelectField
          label={people.for_actor}
          value={actorId}
          options={[{ value: '', label: '' }, ...actors.map(({ id, name }) => ({ value: id, label: name }))]}
          onChange={setActorId}
        />
      )}
      {role !== 'admin' && (
        <Choices
          label={people.where}
          value={where}
          options={[
            { value: 'everywhere', ...people.everywhere },
            { value: 'scope', ...people.scope },
          ]}
          onChange={setWhere}
        />
      )}
      {isScoped && (
        <>
          <Field label={people.scope_kind} value={kind} onInput={setKind} autocomplete="off" maxlength={64} />
          <Field
            label={people.scope_id}
            value={scopeId}
            onInput={setScopeId}
            autocomplete="off"
            mono
            fault={isSent && !isPlaced ? people.scope_wrong : null}
          />
        </>
      )}
      {present && (
        <Note>
          {people.holds_it(
            present.expires_at ? people.until(shortTime(present.expires_at)) : people.without_end,
          )}
        </Note>
      )}
      <SelectField
        label={people.ends}
        value={days}
        options={optionsOf(people.lifetimes)}
        onChange={setDays}
      />
      <Choices
        label={people.how}
        value={mode}
        options={[
          { value: 'offer', ...people.offer(name), disabled: mode === 'assign' && !isHeld && role !== '' },
          { value: 'assign', ...people.assign },
        ]}
        onChange={setHow}
      />
      {role && !isHeld && <p class="soft small">{people.cannot_offer(role)}</p>}
      {mode === 'offer' && (
        <>
          <SelectField
            label={people.answer_by}
            value={answer}
            options={optionsOf(people.answer_days)}
            onChange={setAnswer}
          />
          <TextArea
            label={people.note}
            hint={people.note_hint(name)}
            value={note}
            onInput={setNote}
            maxlength={500}
            rows={2}
          />
        </>
      )}
    </Dialog>
  )
}

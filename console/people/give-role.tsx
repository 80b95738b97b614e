import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { type Session, signedIn } from '../api/session.ts'
import { people } from '../copy/people.ts'
import { useDraft } from '../lib/draft.ts'
import { place } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import { isUuid } from '../lib/uuid.ts'
import { EndField, endIn, endOf } from '../ui/date-field.tsx'
import { Choices, Field, SelectField, TextArea } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { Note } from '../ui/note.tsx'
import { ErrorNote } from '../ui/resource.tsx'
import { toast } from '../ui/toast.tsx'
import { Words } from '../ui/words.tsx'
import { type Person, spoiltByRole } from './person-page.tsx'

type AnswerDays = keyof typeof people.answer_days
const optionsOf = <K extends string>(texts: Record<K, string>) =>
  (Object.keys(texts) as K[]).map((value) => ({ value, label: texts[value] }))

const blank = {
  where: 'everywhere' as 'everywhere' | 'scope',
  chosenKind: '',
  scopeId: '',
  end: endIn('never'),
  how: 'offer' as 'offer' | 'assign',
  answer: '30' as AnswerDays,
  note: '',
}

/** Offers a role, so that the person decides, or assigns it at once. */
export function GiveRole({ person, onClose }: { person: Person; onClose(): void }) {
  const { account, actors } = person
  const name = account.username
  const own = signedIn.value as Session
  const declared = useCall('registry_list', {})
  const registry = declared.data
  const roles = (registry?.roles ?? []).filter(({ grant_paths }) => grant_paths.includes('admin'))
  const { form, set, isDirty } = useDraft('give', {
    ...blank,
    role: place.value.query.get('role') ?? '',
    actorId: actors.length === 1 ? (actors[0]?.id ?? '') : '',
  })
  const { role, where, chosenKind, scopeId, end, how, answer, note, actorId } = form
  const [isSent, setSent] = useState(false)
  const spoils = [...spoiltByRole, 'role_grant_offer_history'] as const
  const offer = useSend('role_grant_offer_create', {
    spoils,
    done: () => toast(people.was_offered(role, name)),
  })
  const assign = useSend('role_grant_assign', { spoils, done: () => toast(people.was_assigned(role, name)) })

  const spec = roles.find(({ name }) => name === role)
  const kinds = spec?.scope_kinds ?? []
  const kind = chosenKind || (kinds[0] ?? '')
  const isScoped = where === 'scope' && kinds.length > 0
  const scope_id = isScoped ? scopeId.trim() : null
  const isPlaced = scope_id === null || (kind !== '' && isUuid(scope_id))
  const isHeld = own.role_grants.some(
    (one) => one.role === role && (one.scope_id === null || one.scope_id === scope_id),
  )
  const mode = role && !isHeld ? 'assign' : how
  const present = actors
    .filter(({ id }) => !actorId || id === actorId)
    .flatMap(({ role_grants }) => role_grants)
    .find((one) => one.role === role && one.scope_id === scope_id)
  const isOffered = person.pending_offers.some(
    (one) =>
      one.role === role &&
      one.scope_id === scope_id &&
      one.from_actor_id === own.actor?.id &&
      one.to_actor_id === (actorId || null),
  )
  const isForNobody = mode === 'assign' && actors.length > 1 && !actorId

  const submit = async (): Promise<void> => {
    setSent(true)
    const expires_at = endOf(end)
    if (!role || !isPlaced || isForNobody || expires_at === undefined) return
    const scope = scope_id === null ? {} : { scope_kind: kind, scope_id }
    const sent = { to_account_id: account.id, role, ...(actorId && { to_actor_id: actorId }), ...scope }
    const isDone =
      mode === 'offer'
        ? await offer.send({
            ...sent,
            message: note.trim() || null,
            expires_in_days: Number(answer),
            grant_expires_at: expires_at,
          })
        : await assign.send({ ...sent, expires_at })
    if (isDone) onClose()
  }
  const sending = mode === 'offer' ? offer : assign
  return (
    <FormDialog
      title={people.give_to(name)}
      whom={account}
      size="full"
      onClose={onClose}
      isDirty={isDirty}
      verb={mode === 'offer' ? people.offer_verb(role) : people.assign_verb(role)}
      of={sending}
      onSubmit={() => void submit()}
      about={
        declared.error &&
        !registry && (
          <ErrorNote error={declared.error} isBusy={declared.isFetching} onRetry={declared.retry} />
        )
      }
    >
      <SelectField
        label={people.which_role}
        value={role}
        options={[
          { value: '', label: people.choose },
          ...roles.map(({ name }) => ({ value: name, label: name })),
        ]}
        onChange={(role) => set({ role, chosenKind: '' })}
        hint={
          spec ? (
            spec.description
          ) : (
            <Words>
              {registry && roles.every(({ name }) => name === 'admin') ? people.only_admin : people.no_keeper}
            </Words>
          )
        }
        fault={isSent && !role ? people.role_missing : null}
      />
      {actors.length > 1 && (
        <SelectField
          label={people.for_actor}
          value={actorId}
          options={[
            { value: '', label: mode === 'offer' ? people.any_actor : people.choose_actor },
            ...actors.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onChange={(actorId) => set({ actorId })}
          fault={isSent && isForNobody ? people.actor_missing : null}
        />
      )}
      {kinds.length > 0 && (
        <Choices
          label={people.where}
          value={where}
          options={[
            { value: 'everywhere', ...people.everywhere },
            { value: 'scope', ...people.scope },
          ]}
          onChange={(where) => set({ where })}
        />
      )}
      {isScoped && (
        <>
          <SelectField
            label={people.scope_kind}
            value={kind}
            options={kinds.map((value) => ({ value, label: value }))}
            onChange={(chosenKind) => set({ chosenKind })}
          />
          <Field
            label={people.scope_id}
            hint={people.scope_id_hint}
            value={scopeId}
            onInput={(scopeId) => set({ scopeId })}
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
      <EndField value={end} onChange={(end) => set({ end })} isSent={isSent} />
      <Choices
        label={people.how}
        value={mode}
        options={[
          { value: 'offer', ...people.offer(name), disabled: mode === 'assign' && !isHeld && role !== '' },
          { value: 'assign', ...people.assign },
        ]}
        onChange={(how) => set({ how })}
      />
      {role && !isHeld && <p class="soft small">{people.cannot_offer(role)}</p>}
      {mode === 'offer' && (
        <>
          {isOffered && <Note>{people.offered_already}</Note>}
          <SelectField
            label={people.answer_by}
            value={answer}
            options={optionsOf(people.answer_days)}
            onChange={(answer) => set({ answer })}
          />
          <TextArea
            label={people.note}
            hint={people.note_hint(name)}
            value={note}
            onInput={(note) => set({ note })}
            maxlength={500}
            rows={2}
          />
        </>
      )}
    </FormDialog>
  )
}

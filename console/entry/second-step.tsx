import { useState } from 'preact/hooks'
import { client, type Refusal } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { entry } from '../copy/entry.ts'
import { askPasskey, type PasskeyOptions } from '../lib/webauthn.ts'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { EntryFrame, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'

type Way = 'totp' | 'recovery_code' | 'passkey'
type Second = { methods: Way[]; passkey_options?: PasskeyOptions }
type Props = Second & { onDone(): void }
type CardProps = Props & { onAgain(): void }

/** The second step that a refusal asks for, if it does. */
export const secondStepOf = (error: Refusal | null): Second | null =>
  error?.reason === 'second_factor_required' ? (error.data as Second) : null

/**
 * The step ends after some minutes or wrong codes; a person who was too slow, or is somebody else, goes back to the
 * first step.
 */
export const SecondStepCard = ({ onAgain, ...props }: CardProps) => (
  <EntryFrame
    title={entry.second_title}
    about={entry.second_about}
    links={
      <button type="button" class="button is-quiet" onClick={onAgain}>
        {entry.begin_again}
      </button>
    }
  >
    <SecondStep {...props} />
  </EntryFrame>
)

/**
 * The second step of a sign-in, or of proving again who is signed in: a passkey, a code of the authenticator, or a
 * recovery code.
 */
export function SecondStep({ methods, passkey_options, onDone }: Props) {
  const [way, setWay] = useState<Way>(methods[0] ?? 'totp')
  const [code, setCode] = useState('')
  const isPasskey = way === 'passkey' && passkey_options
  const { faults, check, reset } = useChecked({ code: isPasskey || code.trim() ? null : entry.code_missing })
  const prove = useRun(
    async () => {
      if (!isPasskey) return await client.account.second_factor({ [way]: code.trim() })
      const passkey = await askPasskey(passkey_options)
      return passkey && (await client.account.second_factor({ passkey }))
    },
    {
      done: (proven) => {
        if (proven) onDone()
      },
    },
  )
  return (
    <EntryForm
      of={prove}
      verb={isPasskey ? entry.use_way.passkey : entry.go_on}
      onSubmit={() => check() && void prove.send(undefined)}
      others={methods
        .filter((one) => one !== way)
        .map((other) => (
          <Button
            key={other}
            kind="quiet"
            wide
            onClick={() => {
              setWay(other)
              setCode('')
              prove.reset()
              reset()
            }}
          >
            {entry.use_way[other]}
          </Button>
        ))}
    >
      {way !== 'passkey' && (
        <Field
          key={way}
          label={entry.ways[way]}
          hint={entry.way_hints[way]}
          value={code}
          onInput={setCode}
          fault={faults.code}
          autocomplete="one-time-code"
          autofocus
          mono
        />
      )}
    </EntryForm>
  )
}

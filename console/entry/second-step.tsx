import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { entry } from '../copy/entry.ts'
import { explain } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'

type Way = 'totp' | 'recovery_code'

/** The second step of a sign-in, or of proving again who is signed in: a code of the authenticator, or one kept. */
export function SecondStep({ methods, onDone }: { methods: readonly string[]; onDone(): void }) {
  const ways = (['totp', 'recovery_code'] as const).filter((way) => methods.includes(way))
  const [way, setWay] = useState<Way>(ways[0] ?? 'totp')
  const [code, setCode] = useState('')
  const prove = useRun(() => client.account.second_factor({ [way]: code.trim() }))
  const other = ways.find((one) => one !== way)
  return (
    <form
      noValidate
      onSubmit={async (event) => {
        event.preventDefault()
        if (code.trim() && (await prove.send(undefined))) onDone()
      }}
    >
      <Fault text={prove.error && explain(prove.error)} />
      <Field
        key={way}
        label={entry.ways[way]}
        hint={entry.way_hints[way]}
        value={code}
        onInput={setCode}
        autocomplete="one-time-code"
        autofocus
        mono
      />
      <Button type="submit" kind="primary" wide isBusy={prove.isBusy} wait={prove.wait}>
        {entry.go_on}
      </Button>
      {other && (
        <Button
          kind="quiet"
          wide
          onClick={() => {
            setWay(other)
            setCode('')
          }}
        >
          {entry.use_way[other]}
        </Button>
      )}
    </form>
  )
}

import { useState } from 'preact/hooks'
import { times } from '../copy/common.ts'
import { distance, fromField, isPast, serverNow, shortTime, toField, utcTime, zoneName } from '../lib/time.ts'
import { Field, SelectField } from './field.tsx'

const dayMs = 86_400_000
/** Which zone the field is in, the same time in UTC, and how far away it is. */
const hintOf = (at: string | null): string =>
  at === null ? zoneName() : `${zoneName()} · ${utcTime(at)} · ${distance(at)}`

type Props = { label: string; value: string | null; onChange(at: string | null): void; fault?: string | null }

/** A time to the minute, in the zone that times are shown in. */
export const DateField = ({ label, value, onChange, fault }: Props) => (
  <Field
    label={label}
    type="datetime-local"
    // Otherwise a year has six digits, and takes those of the hour that are typed after it.
    max="9999-12-31T23:59"
    value={value ? toField(value) : ''}
    onInput={(text) => onChange(fromField(text))}
    hint={hintOf(value)}
    fault={fault}
  />
)

export type EndChoice = keyof typeof times.choices
export type End = {
  choice: EndChoice
  /** For `custom`: the time, or the number of days if only whole ones count. */
  at: string | null
  days: string
}
export const endIn = (choice: EndChoice): End => ({ choice, at: null, days: '' })

/** The number of whole days; null: no end, undefined: not chosen yet. */
export function daysOf({ choice, days }: End): number | null | undefined {
  if (choice === 'never') return null
  if (choice !== 'custom') return Number(choice)
  return /^[1-9]\d{0,4}$/.test(days) ? Number(days) : undefined
}

/** The end; null: never, undefined: not chosen yet, or past. */
export function endOf({ choice, at }: End): string | null | undefined {
  if (choice === 'never') return null
  if (choice === 'custom') return at === null || isPast(at) ? undefined : at
  return new Date(serverNow() + Number(choice) * dayMs).toISOString()
}

const choices = (Object.keys(times.choices) as EndChoice[]).toSorted(
  // Numeric keys come first in an object, so move `never`.
  (a, b) => Number(b === 'never') - Number(a === 'never'),
)

/** When something ends: one of the usual spans, or a custom time; `inDays`: a number of days. */
export function EndField({
  label = times.ends,
  value,
  onChange,
  isSent,
  inDays = false,
}: {
  label?: string
  value: End
  onChange(end: End): void
  isSent: boolean
  inDays?: boolean
}) {
  const [opened] = useState(serverNow)
  const { choice, at, days } = value
  const isCustom = choice === 'custom'
  const after = inDays ? daysOf(value) : isCustom ? undefined : Number(choice) || undefined
  const end = after ? new Date(opened + after * dayMs).toISOString() : null
  return (
    <>
      <SelectField
        label={label}
        value={choice}
        options={choices.map((value) => ({ value, label: times.choices[value] }))}
        onChange={(choice) => onChange({ ...value, choice })}
        hint={end && !isCustom && `${shortTime(end)} · ${utcTime(end)}`}
      />
      {isCustom && inDays && (
        <Field
          label={times.days}
          type="number"
          min={1}
          value={days}
          onInput={(days) => onChange({ ...value, days })}
          hint={end && `${shortTime(end)} · ${utcTime(end)}`}
          fault={isSent && !after ? times.days_wrong : null}
        />
      )}
      {isCustom && !inDays && (
        <DateField
          label={times.ends_at}
          value={at}
          onChange={(at) => onChange({ ...value, at })}
          fault={(isSent && !at) || (at && isPast(at)) ? times.is_past : null}
        />
      )}
    </>
  )
}

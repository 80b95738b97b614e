import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Icon } from './icon.tsx'
import { plain } from './text.tsx'

type Frame = { label: string; hint?: ComponentChildren; fault?: string | null | undefined }
type Ids = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined }

/** Label, hint and error of one input, linked to it. */
function Framed({ label, hint, fault, children }: Frame & { children: (ids: Ids) => ComponentChildren }) {
  const id = useId()
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ') || undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': described, 'aria-invalid': fault ? true : undefined })}
      {hint && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {fault && (
        <div class="fault" id={`${id}-fault`}>
          <Icon name="circle-x" />
          {fault}
        </div>
      )}
    </div>
  )
}

/** Shown during typing, because the browser would silently cut the end off; `Form` sends nothing that is too long. */
function lengthFault(value: string, max: number | undefined) {
  const { length } = value.trim()
  const fault = max !== undefined && length > max ? words.too_long(length, max) : null
  return {
    fault,
    ref: (own: HTMLInputElement | HTMLTextAreaElement | null) => own?.setCustomValidity(fault ?? ''),
  }
}

export type FieldProps = Frame & {
  value: string
  onInput(value: string): void
  type?: 'text' | 'email' | 'search' | 'number' | 'datetime-local'
  autocomplete?: string
  autofocus?: boolean
  required?: boolean
  placeholder?: string
  maxlength?: number
  min?: number | string
  max?: number | string
  mono?: boolean
}

export const Field = ({
  label,
  hint,
  fault,
  value,
  onInput,
  type = 'text',
  autofocus,
  mono,
  maxlength,
  ...rest
}: FieldProps) => {
  const tooLong = lengthFault(value, maxlength)
  // Chromium converts the domain of an address to ASCII, which the server treats as another address.
  const isEmail = type === 'email'
  return (
    <Framed label={label} hint={hint} fault={tooLong.fault ?? fault}>
      {(ids) => (
        <input
          ref={tooLong.ref}
          class={mono ? 'input is-mono' : 'input'}
          spellcheck={false}
          autocapitalize="none"
          {...rest}
          type={(isEmail ? 'text' : type) as 'text'}
          inputMode={isEmail ? 'email' : undefined}
          {...ids}
          value={value}
          data-autofocus={autofocus || undefined}
          onInput={({ currentTarget: { value } }) => onInput(isEmail ? value.trim() : value)}
        />
      )}
    </Framed>
  )
}

export const TextArea = ({
  label,
  hint,
  fault,
  value,
  onInput,
  mono,
  maxlength,
  ...rest
}: Frame & {
  value: string
  onInput(value: string): void
  maxlength?: number
  rows?: number
  mono?: boolean
}) => {
  const tooLong = lengthFault(value, maxlength)
  return (
    <Framed label={label} hint={hint} fault={tooLong.fault ?? fault}>
      {(ids) => (
        <textarea
          ref={tooLong.ref}
          class={mono ? 'input is-mono' : 'input'}
          spellcheck={!mono}
          {...rest}
          {...ids}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Framed>
  )
}

export type PasswordProps = Frame & {
  value: string
  onInput(value: string): void
  autocomplete: 'current-password' | 'new-password'
  autofocus?: boolean
}

export function PasswordField({
  label,
  hint,
  fault,
  value,
  onInput,
  autocomplete,
  autofocus,
}: PasswordProps) {
  const [isShown, show] = useState(false)
  return (
    <Framed label={label} hint={hint} fault={fault}>
      {(ids) => (
        <div class="with-end">
          <input
            class="input"
            type={(isShown ? 'text' : 'password') as 'text'}
            {...ids}
            autocomplete={autocomplete}
            spellcheck={false}
            autocapitalize="none"
            required
            value={value}
            data-autofocus={autofocus || undefined}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          <button
            type="button"
            class="button is-quiet is-small"
            aria-pressed={isShown}
            onClick={() => show(!isShown)}
          >
            {words.show}
            <span class="hidden-text">{label}</span>
          </button>
        </div>
      )}
    </Framed>
  )
}

export type Option<V extends string = string> = { value: V; label: string; disabled?: boolean }

export const SelectField = <V extends string>({
  label,
  hint,
  fault,
  value,
  options,
  onChange,
}: Frame & { value: V; options: readonly Option<NoInfer<V>>[]; onChange(value: NoInfer<V>): void }) => (
  <Framed label={label} hint={hint} fault={fault}>
    {(ids) => (
      <select
        class="input"
        {...ids}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value as V)}
      >
        {options.map((one) => (
          <option key={one.value} value={one.value} disabled={one.disabled}>
            {plain(one.label)}
          </option>
        ))}
      </select>
    )}
  </Framed>
)

/** One of a few choices, each with its meaning visible. */
export function Choices<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: V
  options: readonly (Option<NoInfer<V>> & { hint?: string })[]
  onChange(value: NoInfer<V>): void
}) {
  const name = useId()
  return (
    <fieldset>
      <legend>{label}</legend>
      {options.map((one) => (
        <label key={one.value} class="choice">
          <input
            type="radio"
            name={name}
            checked={one.value === value}
            disabled={one.disabled}
            onChange={() => onChange(one.value)}
          />
          <span>
            {one.label}
            {one.hint && <span class="hint">{one.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

export const Checkbox = ({
  label,
  checked,
  onChange,
}: {
  label: ComponentChildren
  checked: boolean
  onChange(checked: boolean): void
}) => (
  <label class="choice">
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
    <span>{label}</span>
  </label>
)

export const Switch = ({
  label,
  checked,
  isBusy,
  onChange,
}: {
  label: string
  checked: boolean
  isBusy?: boolean
  onChange(checked: boolean): void
}) => (
  <input
    type="checkbox"
    role="switch"
    class="switch"
    aria-label={label}
    aria-busy={isBusy || undefined}
    checked={checked}
    onClick={(event) => {
      // The server's answer switches it, not the click.
      event.preventDefault()
      if (!isBusy) onChange(!checked)
    }}
  />
)

import { explorer } from '../copy/explorer.ts'
import { Checkbox, Field, SelectField, TextArea } from '../ui/field.tsx'
import { Words } from '../ui/words.tsx'
import type { Fault, Input, Typed } from './schema.ts'

/** One parameter, by its kind; `typed` holds the values of all of them. */
export function ParamField({
  input,
  typed,
  onType,
  fault,
  prefix = '',
}: {
  input: Input
  typed: Typed
  onType(path: string, text: string | null): void
  fault: Fault | undefined
  prefix?: string
}) {
  const path = prefix + input.name
  const text = typed[path] ?? ''
  const label = input.isRequired ? explorer.required(input.name) : input.name
  const common = {
    label,
    hint: input.hint && <Words>{input.hint}</Words>,
    fault: fault?.path === path ? fault.message : null,
    value: text,
    onInput: (text: string) => onType(path, text),
  }
  const nothing = { value: '', label: explorer.left_out }
  const none = input.isNullable ? [{ value: 'null', label: 'null' }] : []
  if (input.kind === 'choice')
    return (
      <SelectField
        {...common}
        value={typed[path] === null ? 'null' : text}
        options={[
          nothing,
          ...input.choices.map((one) => ({ value: String(one), label: String(one) })),
          ...none,
        ]}
        onChange={(text) => onType(path, text === 'null' ? null : text)}
      />
    )
  if (input.kind === 'group')
    return (
      <fieldset class="stack">
        <legend>{label}</legend>
        {input.inputs.map((one) => (
          <ParamField
            key={one.name}
            input={one}
            typed={typed}
            onType={onType}
            fault={fault}
            prefix={`${path}.`}
          />
        ))}
      </fieldset>
    )
  return (
    <div>
      {input.kind === 'json' ? (
        <TextArea {...common} hint={common.hint || explorer.as_json} rows={4} mono />
      ) : input.kind === 'number' ? (
        <Field
          {...common}
          type="number"
          {...(input.min !== undefined && { min: input.min })}
          {...(input.max !== undefined && { max: input.max })}
        />
      ) : (
        <Field {...common} mono autocomplete="off" />
      )}
      {input.isNullable && (
        <Checkbox
          label={explorer.send_null(input.name)}
          checked={typed[path] === null}
          onChange={(isNull) => onType(path, isNull ? null : '')}
        />
      )}
    </div>
  )
}

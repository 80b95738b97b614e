import { StartError } from '../errors.ts'
import { meant } from '../wire/closest.ts'
import { isPlainObject } from '../wire/input.ts'

/** An entry that is just a name: a scope kind, a grant path or a credential type. */
export type NamedEntry = { readonly name: string; readonly description?: string | undefined }

/** The kind of an entry, as messages call it. */
export type What =
  | 'role'
  | 'scope kind'
  | 'grant path'
  | 'credential type'
  | 'audit event type'
  | 'self-service role'
  | 'reason'
  | 'notification'

export type Refuse = (rule: string) => never

/** Stops the start with a message that names the entry. */
export const refuseEntry =
  (what: What, name: unknown): Refuse =>
  (rule) => {
    const { key } = names[what]
    throw new StartError(
      'invalid_registry',
      `${key}: the ${what} ${typeof name === 'string' ? JSON.stringify(name) : 'without a name'} ${rule}`,
      78,
    )
  }

const plainName = {
  form: /^[a-z]([a-z_]*[a-z])?$/,
  max: 64,
  rule: 'must be 1 to 64 characters of a-z and _, beginning and ending with a letter.',
}
const wireName = {
  form: /^[a-z][a-z0-9_]*$/,
  max: 64,
  rule: 'must be 1 to 64 characters of a-z, 0-9 and _, beginning with a letter.',
}
const eventName = {
  form: /^[A-Za-z][A-Za-z0-9_./-]*$/,
  max: 128,
  rule: 'must be 1 to 128 characters of letters, digits and _ . / -, beginning with a letter.',
}

/** The option that registers each kind, and the rule for its names. */
const names: Record<What, { key: string; form: RegExp; max: number; rule: string }> = {
  role: { key: 'roles', ...plainName },
  'scope kind': { key: 'scope_kinds', ...plainName },
  'grant path': { key: 'grant_paths', ...plainName },
  'credential type': { key: 'credential_types', ...plainName },
  'audit event type': { key: 'audit_events', ...eventName },
  'self-service role': { key: 'self_service_roles', ...plainName },
  reason: { key: 'reasons', ...wireName },
  notification: { key: 'notifications', ...wireName },
}

/** Refuses a name that has the wrong form, is builtin, or is registered twice. */
export function checkName(
  what: What,
  name: unknown,
  taken: { builtin(name: string): boolean; own(name: string): boolean },
): asserts name is string {
  const refuse: Refuse = refuseEntry(what, name)
  const { form, max, rule } = names[what]
  if (typeof name !== 'string' || name.length > max || !form.test(name)) refuse(rule)
  if (taken.builtin(name)) refuse('is built in and cannot be registered. Choose another name.')
  if (taken.own(name)) refuse('is registered twice. Choose another name for one of them.')
}

const descriptionMax = 500

/** Checks the shape of an entry before it is used: no compiler checks a config file. */
export function checkEntry(what: What, entry: unknown, keys: readonly string[]): void {
  const named = isPlainObject(entry) ? entry : {}
  const refuse: Refuse = refuseEntry(what, isPlainObject(entry) ? entry.name : entry)
  if (!isPlainObject(entry)) refuse('must be an object with a name.')
  checkKeys(refuse, named, keys)
  const { description = '' } = named
  if (typeof description !== 'string' || description.length > descriptionMax)
    refuse(`must have a text of at most ${descriptionMax} characters as its description.`)
}

/** Refuses a key that is not one of these. */
export function checkKeys(refuse: (rule: string) => never, entry: object, keys: readonly string[]): void {
  const unknown = Object.keys(entry).find((key) => !keys.includes(key))
  if (unknown !== undefined)
    refuse(`has the unknown key "${unknown}"${meant(unknown, keys, '.')} It may have ${keys.join(', ')}.`)
}

/** The names of a registry of plain entries, builtin ones first. */
export function namedRegistry(
  what: What,
  builtin: readonly string[],
  entries: readonly NamedEntry[] = [],
): ReadonlySet<string> {
  const all = new Set(builtin)
  for (const entry of entries) {
    checkEntry(what, entry, ['name', 'description'])
    const { name } = entry
    checkName(what, name, { builtin: (it) => builtin.includes(it), own: (it) => all.has(it) })
    all.add(name)
  }
  return all
}

import type { Kind } from './kinds.ts'

/** One row of the table of settings: the kind of value, and the rest of the setting. */
export type Setting<T, O> = {
  kind: Kind<T, O>
  default: T | ((known: Known) => T)
  /** The default of `createService`, if different. */
  library?: T
  /** Describes a computed default, in Markdown. */
  shown?: string
  /** Never printed; can be read from a file by `<NAME>_FILE`. */
  secret?: true
  doc: string
}

/** Infers the type of a row from its kind alone, so that the default cannot widen it. */
export function setting<T, O>(kind: Kind<T, O>, rest: NoInfer<Omit<Setting<T, O>, 'kind'>>): Setting<T, O> {
  return { kind, ...rest }
}

/** The settings that a default may depend on, and the transport of the consumer. */
export type Known = {
  host: string
  port: number
  data_dir: string
  account_path: string
  database_pool_max: number
  public_url: string | null
  smtp_url: string | null
  rp_id: string | null
  passkey_origins: readonly string[]
  mail: string
  deliver: unknown
}

/** Any row of the table, for generic code. */
export type AnySetting = Setting<unknown, unknown>

import type { Kind } from './kinds.ts'

/** One row of the table of settings: a kind of value and what is particular to this setting. */
export type Setting<T, O> = {
  kind: Kind<T, O>
  default: T | ((known: Known) => T)
  /** The default of `createService`, where it differs. */
  library?: T
  /** Words for a default that depends on something, in Markdown. */
  shown?: string
  /** Never printed; may come from a file by `<NAME>_FILE`. */
  secret?: true
  doc: string
}

/** Types a row by its kind, so that the default cannot widen it. */
export function setting<T, O>(kind: Kind<T, O>, rest: NoInfer<Omit<Setting<T, O>, 'kind'>>): Setting<T, O> {
  return { kind, ...rest }
}

/** What a default may depend on. */
export type Known = { host: string; data_dir: string; account_path: string; database_pool_max: number }

/** One row of the table, its types aside: what generic code sees. */
export type AnySetting = Setting<unknown, unknown>

import type { ParsedConfig } from './config.ts'
import { written } from './kinds.ts'
import { envName, type Source } from './reading.ts'
import type { AnySetting } from './setting.ts'
import { type Key, keys, settings } from './table.ts'

/** An effective setting as printed; a secret that is set is `***`. */
export type ShownSetting = {
  key: Key
  name: string
  /** As written in the environment; null for unset. */
  value: string | null
  source: Source
}

/** Every setting with its effective value, for `cellkeep config` and the startup log. */
export const shownSettings = ({ config, sources }: ParsedConfig): ShownSetting[] =>
  keys.map((key) => ({ key, name: envName(key), value: shown(key, config[key]), source: sources[key] }))

function shown(key: Key, value: unknown): string | null {
  const { kind, secret } = settings[key] as AnySetting
  const text = written(kind, value) ?? null
  return secret && text ? '***' : text
}

import type { Key } from '../table.ts'

/** What the rules need besides the values. */
export type RuleContext = {
  /** The name of the setting for messages: the variable, or the key and file. */
  label(key: Key): string
  isGiven(key: Key): boolean
  /** Given, but invalid; the config has the default instead. */
  isBroken(key: Key): boolean
  /** True for a server; a command needs neither origins nor cookie keys. */
  serves: boolean
  /** The consumer's transport of messages. */
  deliver?: unknown
}

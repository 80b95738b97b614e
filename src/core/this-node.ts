/** What readiness may warn of while it answers 200. */
export type Warning = 'bus_deaf' | 'clock_skew' | 'schema_newer' | 'replica_down'

/** `serving` → `leaving` (only readiness answers 503) → `draining` (every request gets 503). */
type Phase = 'serving' | 'leaving' | 'draining'

/** This process among those that serve the database. */
export type ThisNode = {
  /** 16 hex digits, new at each start; it signs the signals to other nodes. */
  readonly id: string
  readonly name: string
  phase: Phase
  /** An operator drains this node: balancers send it no new clients, and it still answers. */
  isDrained: boolean
  /** A node of a newer version also serves, and does the periodic work instead. */
  isBehind: boolean
}

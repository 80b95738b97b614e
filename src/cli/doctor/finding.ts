/** A problem of an installation, and how to fix it. */
export type Finding = { finding: string; what: string; remedy: string; fix?: Fix }

/** What `--fix` does about it; never changes stored data. */
export type Fix = { does: string; run(): Promise<unknown> }

/** An error needs attention now and decides the exit code; a warning may be intended, or can wait. */
type Level = 'error' | 'warning'

const warnings = new Set([
  'metrics_exposed',
  'passkeys_off',
  'database_user_shared',
  'disk_low',
  'statement_names_lost',
  'replication_asynchronous',
  'statistics_missing',
  'bloat',
  'partitions_many',
  'versions_differ',
  'clock_skew',
  'limiter_store_memory',
  'replica_behind',
  'replica_down',
  'second_factor_missing',
  'email_in_use',
  'foreign_hashes',
  'orphaned_grants',
  'orphaned_links',
  'orphaned_passkeys',
  'messages_failed',
  'messages_waiting',
  'invites_without_link',
  'secrets_under_old_keys',
])

export const levelOf = (finding: string): Level => (warnings.has(finding) ? 'warning' : 'error')

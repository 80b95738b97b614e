import { createHmac } from 'node:crypto'
import type { ParsedConfig } from '../config/config.ts'
import type { Config } from '../config/table.ts'
import type { Digests } from './nodes.ts'

const named = [
  'rpc_path',
  'account_path',
  'ws_path',
  'audit_stream_path',
  'cookie_host_prefix',
  'require_second_factor',
  'audit_retention_days',
  'audit_partition_rows',
  'cell_tombstone_retention_days',
] as const satisfies (keyof Config)[]

export type Keys = { cookieKeys: readonly string[]; secretKeys?: readonly string[] | null }

/**
 * A digest of each setting on which all nodes of a database must agree. It only shows whether two are equal: it is
 * short, and keyed by a salt that no other database has.
 */
export function agreedSettings({ config, declarations }: ParsedConfig, keys: Keys, salt: string): Digests {
  const limits = (Object.keys(config) as (keyof Config)[]).filter((name) => name.startsWith('limit_'))
  const {
    roles = [],
    scope_kinds = [],
    grant_paths = [],
    credential_types = [],
    audit_events = {},
  } = declarations
  const values: Record<string, unknown> = {
    cookie_keys: keys.cookieKeys,
    secret_keys: keys.secretKeys ?? null,
    ...Object.fromEntries([...named, ...limits].map((name) => [name, config[name]])),
    roles: sorted(roles),
    scope_kinds: sorted(scope_kinds),
    grant_paths: sorted(grant_paths),
    credential_types: sorted(credential_types),
    audit_events: Object.keys(audit_events).sort(),
  }
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      createHmac('sha256', salt)
        .update(`${name} ${JSON.stringify(value)}`)
        .digest('hex')
        .slice(0, 8),
    ]),
  )
}

/** The order of declared names has no meaning. */
const sorted = (entries: readonly { name: string }[]): unknown =>
  [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))

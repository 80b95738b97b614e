import { availableParallelism } from 'node:os'
import { argon2Cost, blocklist, flag, limit, oneOf, orOff, orZero, whole } from './kinds.ts'
import { setting } from './setting.ts'

/** The part of the table of settings (table.ts) that bounds what accounts and clients may have and do. */

const perAccount = () => orOff(whole(1, 1000))

export const accounts = {
  max_sessions: setting(perAccount(), {
    default: 5,
    doc: 'Max sessions per account; a new one ends the oldest.',
  }),
  max_tokens: setting(perAccount(), {
    default: 10,
    doc: 'Max API tokens per account; a new one revokes the oldest.',
  }),
  max_actors: setting(perAccount(), { default: 50, doc: 'Max actors per account.' }),
  max_role_grants: setting(orOff(whole(1, 1_000_000)), {
    default: 1000,
    doc: 'Max active role grants of an actor; with that many, it cannot accept an offer of another.',
  }),
  max_pending_offers: setting(orOff(whole(1, 1_000_000)), {
    default: 5000,
    doc: 'Max pending offers of roles that an actor has made.',
  }),
  username_change: setting(oneOf('off', 'admin', 'self'), {
    default: 'admin',
    doc: 'Who may change usernames. `off`: nobody. `admin`: admins and operators. `self`: everybody also their own.',
  }),
  username_reserve_days: setting(orOff(whole(1, 36_500)), {
    default: null,
    doc: 'How long a former username stays reserved to its account; off: until the account is purged.',
  }),
  actor_rename: setting(flag(), { default: true, doc: 'The method `actor_rename`.' }),
  max_cell_edges: setting(orOff(whole(1, 1_000_000)), {
    default: 10_000,
    doc: 'Max fields of a cell, and max items of a cell.',
  }),
  max_account_cells: setting(orOff(whole(1, 1_000_000_000)), {
    default: 1_000_000,
    doc: 'Max cells that an account stores, including deleted ones; admins are exempt. If it is above 1000, clones of several cells leave the last 1000 to other writes.',
  }),
  max_account_bytes: setting(orOff(whole(1, 1_000_000_000_000_000, 'bytes')), {
    default: 10_737_418_240,
    doc: 'Max bytes of data in those cells; admins are exempt. If it is above 256 MiB, clones of several cells leave the last 256 MiB to other writes.',
  }),
  login_fail_floor_ms: setting(whole(-1, 10_000), {
    default: 250,
    doc: 'Min duration of a refused login or signup; 0 or less: none.',
  }),
  login_fail_jitter_ms: setting(whole(0, 10_000), {
    default: 25,
    doc: 'Max random time added to `CELLKEEP_LOGIN_FAIL_FLOOR_MS`; 0: none.',
  }),
  password_min: setting(whole(12, 64), {
    default: 12,
    doc: 'Min characters of a new password; existing ones stay valid. 15 is advised where a password is the only proof.',
  }),
  password_blocklist: setting(blocklist(), {
    default: 'builtin',
    doc: 'Passwords that nobody may set: `builtin` is the 10,000 most used ones; a file adds its lines to these.',
  }),
  hash_concurrency: setting(whole(1, 64), {
    default: () => Math.min(4, availableParallelism()),
    shown: 'CPU count, at most 4',
    doc: 'Max password hashes computed at a time, each on a low-priority thread.',
  }),
  hash_queue_max: setting(whole(0, 10_000), {
    default: 64,
    doc: 'Max hashes that wait; beyond it, calls are refused with 503 `busy`.',
  }),
  argon2: setting(argon2Cost(), {
    default: { memoryCost: 19_456, timeCost: 2, parallelism: 1 },
    doc: 'Argon2id cost; none of the three may be below the default except in development.',
  }),
  cleanup_interval_s: setting(orZero(orOff(whole(10, 86_400))), {
    default: 600,
    library: null,
    doc: 'Interval at which expired rows are removed.',
  }),
  audit_retention_days: setting(orOff(whole(1, 36_500)), {
    default: null,
    doc: 'Age at which audit rows are removed.',
  }),
  audit_partition_rows: setting(whole(1_000_000, 500_000_000), {
    default: 10_000_000,
    doc: 'Rows of the audit log per partition; retention drops whole partitions. Applies to partitions made from then on.',
  }),
  cell_tombstone_retention_days: setting(orOff(whole(1, 36_500)), {
    default: null,
    doc: 'Age at which deleted cells are removed for good.',
  }),
}

const allowance = (max: number, seconds: number, doc: string) =>
  setting(orOff(limit()), { default: { max, seconds }, doc })

export const limits = {
  limit_store: setting(oneOf('memory', 'postgres'), {
    default: 'memory',
    doc: 'Where limiters count: in the `memory` of each process, or in `postgres` for all nodes together.',
  }),
  limit_login_ip: allowance(
    30,
    900,
    'Failed logins per IP; an IPv6 /48 gets ten times as many, as for every limit per IP.',
  ),
  limit_login_account: allowance(
    10,
    1800,
    'Failed logins per name tried, and failed logins plus wrong current passwords per account. An IP that logged in to the account in the last 90 days is counted separately.',
  ),
  limit_second_factor: allowance(10, 1800, 'Wrong second factors per account.'),
  limit_bootstrap_ip: allowance(5, 900, 'Failed bootstraps per IP.'),
  limit_signup_ip: allowance(5, 900, 'Refused signups per IP.'),
  limit_signup_username: allowance(10, 1800, 'Refused signups per username.'),
  limit_signup_open_ip: allowance(10, 3600, 'Successful open signups per IP.'),
  limit_recover_ip: allowance(10, 3600, 'Requests per IP to reset a forgotten password.'),
  limit_recover_identifier: allowance(3, 3600, 'Requests per username or e-mail typed to reset a password.'),
  limit_ticket_ip: allowance(10, 900, 'Attempts with unknown or used links per IP.'),
  limit_flow_ip: allowance(300, 900, 'Sign-ins with a passkey or a provider begun per IP.'),
  limit_mail_address: allowance(
    5,
    3600,
    'Messages with a link per address; further ones are not sent. Invites and changes of an e-mail are counted apart.',
  ),
  limit_mail_notice: allowance(20, 86_400, 'Notices per address; further ones are not sent.'),
  limit_lookup: allowance(1200, 900, 'Actor lookups and searches per account.'),
  limit_account: allowance(1200, 900, 'Token creation and account deletion per account.'),
  limit_mail: allowance(5, 3600, 'Links to verify or change one’s own e-mail, per account.'),
  limit_rename: allowance(3, 86_400, 'Changes of one’s own username, per account.'),
  limit_credential: allowance(60, 900, 'Changes to the ways to sign in, per account.'),
  limit_admin_write: allowance(1200, 900, 'Administrative changes per account.'),
  limit_role_revoke: allowance(1200, 900, 'Role grant revocations per account.'),
  limit_role_write: allowance(1200, 900, 'Offers and role assignments per account.'),
  limit_admin_read: allowance(1200, 900, 'Administrative lists per account.'),
  limit_cell_create: allowance(1200, 900, 'Cells created per account.'),
  limit_cell_write: allowance(6000, 900, 'Changes to cells, edges and grants per account.'),
  limit_cell_clone: allowance(
    20_000,
    900,
    'Size of clones per account: each cell counts 1, as do each 16 KiB of data, each 32 edges, and each 1000 edges to cells that the caller may not see.',
  ),
  limit_cell_read: allowance(600, 900, 'Anonymous cell reads per IP.'),
  limit_discovery: allowance(600, 900, 'Reads of the machine-readable descriptions per IP.'),
  max_connections: setting(whole(1, 1_000_000), {
    default: 10_000,
    doc: 'Max sockets plus streams per process.',
  }),
  ws_per_account: setting(whole(1, 10_000), { default: 50, doc: 'Max sockets per account and process.' }),
  sse_per_credential: setting(whole(1, 1000), {
    default: 10,
    doc: 'Max streams per credential and process.',
  }),
}

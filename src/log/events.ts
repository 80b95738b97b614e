/** The word `event` of each line of level warn or error, and what to do. */
export const logEvents = {
  audit_partition:
    'The database user could not create a partition for the next rows of the audit log. The line says why: let the user own the schema, or free space on the disk.',
  audit_row_flawed:
    'A row of the audit log breaks the rules of its type, but was written anyway. Correct the code that declares or writes it.',
  audit_rows_lost:
    'Changes were made without their audit rows. `cellkeep doctor` counts the rows; the line has the cause, often a full disk or a changed function.',
  audit_unreadable:
    'The audit log could not be read, and its streams wait. Usually the database is unreachable: see `db_lost`.',
  bootstrap_token:
    'The file of the bootstrap token cannot be used or removed. Delete it, or make its directory writable for the server alone, as the line says.',
  breaker_open:
    'No primary answered for as long as calls may wait, so calls are refused at once until one answers. The line has the last error.',
  bus_deaf:
    'Signals of other nodes do not arrive, so connections that should be closed may stay open for 30 s. A pooler or proxy loses LISTEN: set `CELLKEEP_DATABASE_DIRECT_URL`. Or NOTIFY is refused because its queue is full: see the log of the database.',
  cleanup_failed:
    'A run of the cleanup failed; the next one continues. If it keeps failing, read the error: rows pile up meanwhile.',
  clock_skew: 'The clocks of this machine and of the database differ. Synchronise both by NTP.',
  configuration: 'A setting weakens the service or is ignored. Correct it, or leave it if that is intended.',
  console_not_built:
    'The console has not been built, as in a clone of the repository. Run `npm run build:console`; the package contains it.',
  credential_end_failed:
    'A replaced session could not be ended, and stays valid until it expires. End it with `cellkeep session revoke`.',
  daemon_token:
    'The file of the daemon token is missing, or others can read it. Write a new one with `cellkeep daemon-token rotate`.',
  data_dir_lost:
    'Another process uses the same data directory, so this one stops, or in a library refuses every request. Find out who started it: only one may.',
  db_lost:
    'A connection to the database was lost or refused, or the database cannot be reached. One line is normal at a restart or fail-over; if it repeats, check whether the database runs and still lets this user in, and what `/ready` says.',
  db_not_ready:
    '`/ready` fails; the line has the reason: `db_unreachable`, `db_read_only` (a standby, or a database set read-only), `db_other_database`, `stale_primary`, or `schema_drift` with what is missing.',
  delivery_failed:
    'A message was not delivered. Check the mail server or your `deliver`; `cellkeep mail list` shows whether it is tried again.',
  descriptors_out:
    'No file descriptor is left, so new connections are cut without an answer. Raise the limit (`ulimit -n`, or `LimitNOFILE` in the unit), or find out who opens so many connections.',
  disk_low: 'The disk of the data directory is filling up. Free space before content is refused.',
  disk_full: 'The disk of the data directory is full, so content is refused. Free space.',
  effect_failed:
    'Something to be done after a commit failed; the change itself is made. If the stack shows a handler of yours, correct it.',
  embedded_db:
    'The embedded database ended, its socket is gone, or it cannot be started or stopped. `db.log` in the data directory says why.',
  job_aborted:
    'A periodic job of this node stopped early; this node or another continues it at the next turn.',
  last_used:
    'The time of the last use of tokens could not be recorded. Usually the database is unreachable: see `db_lost`.',
  limiter_slot:
    'An attempt wrongly counts against a limit until its window ends. Usually the database is unreachable: see `db_lost`.',
  live_check_failed:
    'The credentials of open connections could not be checked in the database; it is tried again within 25 s.',
  log_lines_dropped:
    'The reader of this log was too slow and lines are missing. Make the reader faster, or log less with `CELLKEEP_LOG_LEVEL`.',
  migration_failed:
    'A migration in the background failed and is tried again; `cellkeep migrate status` shows what it waits for.',
  migration_waits:
    'Another process is migrating the database; `cellkeep migrate status` shows it. You need not do anything.',
  node_heartbeat: 'The node could not update its row in `cellkeep nodes`. It still serves.',
  node_differs:
    'Settings that nodes must share differ, or another node has the same name or a newer version; `mark` and `cellkeep nodes` say which.',
  output_flaw:
    'A result of a method breaks its declared output. Correct the handler of the method or its `output`.',
  provider_refused:
    'A sign-in by a provider was refused; the line has the cause. If it repeats, check the settings here and at the provider.',
  refused:
    'A request was refused because something that it needs failed, most often the database. The line has the cause.',
  replica_down:
    'A replica is behind, unreachable or not a standby of this database, so the primary answers its reads. The line says why; `cellkeep doctor` checks each replica.',
  request_failed:
    'A bug: the caller got `internal_error`. The line has the stack; report it, or correct your handler.',
  schema_newer:
    'A newer version has migrated the database; this version still works with it. Finish the roll-out, or go back to this version.',
  sealed_lost: 'No key of `CELLKEEP_SECRET_KEYS` decrypts a secret. Put back the key that encrypted it.',
  shutdown_cut:
    'The stop took longer than `CELLKEEP_SHUTDOWN_TIMEOUT_MS`, or a part failed to close. Running requests may have been cut.',
  signals_lost:
    'Nodes did not hear each other for a while; they catch up within 30 s. If it repeats, something cuts the connection for signals.',
  stale_primary:
    'The only server that takes writes is on an older timeline than one used before. Find out whether newer rows are on another server. Then promote the right server, or restart the nodes to accept this one.',
  statement_names_lost:
    'A connection pooler loses prepared statements. Set `CELLKEEP_DATABASE_STATEMENTS=unnamed`, or make the pooler track them.',
  socket_failed: 'A WebSocket could not be opened or ended unexpectedly; its client reconnects.',
  unhandled:
    'A bug: an error that no code handled. The process keeps running. Report it, or correct your handler.',
} as const

export type LogEvent = keyof typeof logEvents

/** A line: fields for machines and a text, or a text alone. An error is the field `err`. */
export type LogLine = { (fields: object, text?: string): void; (text: string): void }
/** A line for the operator, whose `event` docs/log-events.md explains. */
export type EventLine = (fields: { event: LogEvent } & Record<string, unknown>, text: string) => void
/** The part of a pino logger that the service uses; any object with these four functions will do. */
export type Log = Readonly<Record<'debug' | 'info', LogLine> & Record<'warn' | 'error', EventLine>>

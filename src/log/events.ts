/** The word `event` of each line of level warn or error, and what to do. */
export const logEvents = {
  audit_partition:
    'The database user could not make a table for the next rows of the audit log. The line says why; let it own the schema, or make room.',
  audit_row_flawed:
    'A row of the audit log breaks the rules of its type. Correct the code that declares or writes it.',
  audit_rows_lost:
    'Changes went on without their audit rows. `cellkeep doctor` counts them; the line has the cause, often a full disk or a changed function.',
  audit_unreadable:
    'The audit log could not be read, and its streams wait. Follows from an unreachable database.',
  bootstrap_token:
    'The file of the bootstrap token cannot be used or removed. Delete it, or make its directory writable and private, as the line says.',
  breaker_open:
    'No primary answered for as long as calls may wait, so calls are refused at once until one does. The line has the last error.',
  bus_deaf:
    'Signals of other nodes do not arrive, so connections that should close may stay open for 30 s. A pooler or proxy forgets LISTEN: set `CELLKEEP_DATABASE_DIRECT_URL`.',
  cleanup_failed:
    'A run of the cleanup failed; the next one goes on. If it persists, read the error: rows pile up meanwhile.',
  clock_skew: 'The clocks of this machine and of the database differ. Synchronise both by NTP.',
  configuration: 'A setting weakens the service or is ignored. Correct it, or keep it on purpose.',
  console_not_built:
    'The console has not been built. Run `npm run build:console`; the package comes with it.',
  credential_end_failed:
    'A replaced session could not be ended, and is valid until it expires. End it with `cellkeep session revoke`.',
  daemon_token:
    'The file of the daemon token is missing, or others can read it. Make a new one with `cellkeep daemon-token rotate`.',
  data_dir_lost:
    'Another process serves from the same data directory. Find out who started it; only one may.',
  db_lost:
    'A connection to the database ended, or it cannot be reached. One line is usual at a restart or fail-over; if it persists, see whether the database runs, and what `/ready` says.',
  db_not_ready:
    'Readiness fails; the line says why: `db_read_only` (a standby), `schema_drift` (with what is missing) or `db_unreachable`.',
  delivery_failed:
    'A message was not delivered and is tried again. Check the mail server or your `deliver`; `admin_message_list` shows all.',
  disk_low: 'Make room on the disk of the data directory before content is refused.',
  disk_full: 'Content is refused until there is room on the disk of the data directory.',
  effect_failed:
    'Work after a commit failed; the change itself is done. If a handler of yours is in the stack, correct it.',
  embedded_db:
    'The embedded database ended, or cannot be started or stopped; `db.log` in the data directory says why.',
  job_aborted: 'A job of this node stopped before its end; it, or another node, goes on at the next turn.',
  last_used: 'The last use of tokens could not be recorded. Follows from an unreachable database.',
  limiter_slot:
    'An attempt stays charged to a limiter until its window ends, although it should not. Follows from an unreachable database.',
  live_check_failed: 'Connections could not be compared with the database; it is tried again within 25 s.',
  log_lines_dropped:
    'The reader of this log was too slow and lines are missing. Make the reader faster, or log less with `CELLKEEP_LOG_LEVEL`.',
  migration_failed:
    'A migration in the background failed and is tried again; `cellkeep migrate status` shows what it waits for.',
  migration_waits:
    'Another process migrates the database; `cellkeep migrate status` shows it. There is nothing to do.',
  node_heartbeat: 'The node could not update its row in `cellkeep nodes`. It serves all the same.',
  node_differs: 'Settings that nodes must share differ. `cellkeep nodes` names them.',
  output_flaw: 'A result of a method breaks its declared output. Correct its handler or its `output`.',
  provider_refused:
    'A sign-in by a provider was refused; the line has the cause. If it repeats, check the settings here and at the provider.',
  refused:
    'A request was refused because something that it needs failed, most often the database. The line has the cause.',
  replica_down:
    'A replica is behind, away, or no standby of this database; the primary answers meanwhile. The line says why; `cellkeep doctor` checks each.',
  request_failed:
    'A bug: the caller got `internal_error`. The line has the stack; report it, or correct your handler.',
  schema_newer:
    'A newer version has migrated the database, and this one serves on it. Finish the roll-out, or go back on purpose.',
  sealed_lost: 'No key of `CELLKEEP_SECRET_KEYS` opens a secret. Put back the key that encrypted it.',
  shutdown_cut:
    'The stop took longer than `CELLKEEP_SHUTDOWN_TIMEOUT_MS`, or a part failed to close. Clients saw cut requests.',
  signals_lost:
    'Nodes did not hear each other for a while; they catch up within 30 s. If it persists, something cuts the connection for signals.',
  stale_primary:
    'The only server that takes writes is on an older timeline than one used before. Find out whether newer rows are elsewhere, then promote the right server, or restart the nodes to accept this one.',
  statement_names_lost:
    'A connection pooler loses prepared statements: set `CELLKEEP_DATABASE_STATEMENTS=unnamed`, or let it track them.',
  socket_failed: 'A WebSocket could not be opened or ended unexpectedly; its client comes back.',
  unhandled: 'A bug: an error that nobody handled. The process goes on. Report it, or correct your handler.',
} as const

export type LogEvent = keyof typeof logEvents

/** A line: fields for machines and a text, or a text alone. An error is the field `err`. */
export type LogLine = { (fields: object, text?: string): void; (text: string): void }
/** A line for the operator, whose `event` docs/log-events.md explains. */
export type EventLine = (fields: { event: LogEvent } & Record<string, unknown>, text: string) => void
/** The part of a pino logger that the service uses; any object with these four functions will do. */
export type Log = Readonly<Record<'debug' | 'info', LogLine> & Record<'warn' | 'error', EventLine>>

/** The word `event` of each line of level warn or error, and what to do. */
export const logEvents = {
  audit_partition:
    'The database user could not make a table for the next rows of the audit log. The line says why; let it own the schema, or make room.',
  audit_row_flawed:
    'A row of the audit log breaks the rules of its type. Correct the code that declares or writes it.',
  audit_rows_lost:
    'Changes went on without their audit rows. `cellkeep doctor` counts them; the line has the cause, often a full disk or a changed function.',
  audit_unreadable: 'The audit streams wait. Follows from a database that is away.',
  bootstrap_token: 'Delete the file, or make its directory writable and private, as the line says.',
  breaker_open:
    'No primary answered for as long as calls may wait, so they are refused at once. It ends by itself once one does; the line says what the last attempt met.',
  bus_deaf:
    'What nodes tell each other does not arrive, and closings take up to 30 s. A pooler or proxy forgets LISTEN: give the bus a direct connection.',
  cleanup_failed:
    'Nothing is lost: the next run goes on. If it stays, read the error; rows pile up meanwhile.',
  clock_skew: 'The clocks of this machine and of the database differ. Synchronise both by NTP.',
  configuration: 'A setting weakens the service or is ignored. Correct it, or leave it knowingly.',
  console_not_built: 'Run `npm run build:console`; packages have it.',
  credential_end_failed:
    'A replaced session could not be ended, and is valid until it expires. End it with `cellkeep session revoke`.',
  daemon_token:
    'The file of the daemon token is missing, or others can read it. Make it anew with `cellkeep daemon-token rotate`.',
  data_dir_lost:
    'Another process serves from the same data directory. Find out who started it; only one may.',
  db_lost:
    'A connection to the database ended, or it cannot be reached. One line belongs to a restart or a fail-over; if it stays, see whether the database runs and `/ready`.',
  db_not_ready:
    'Readiness fails; the line says why: `db_read_only` a standby, `schema_drift` what is missing, `db_unreachable` nobody answers.',
  delivery_failed:
    'A message was not delivered and is tried again. Check the mail server or your `deliver`; `admin_message_list` shows all.',
  disk_low: 'Make room on the disk of the data directory before content is refused.',
  disk_full: 'Content is refused until there is room on the disk of the data directory.',
  effect_failed:
    'What follows a commit failed; the change itself is done. If a handler of yours is in the stack, correct it.',
  embedded_db:
    'The embedded database ended, or cannot be started or stopped; `db.log` in the data directory says why.',
  job_aborted: 'A job of this node stopped before its end; it, or another node, goes on at the next turn.',
  last_used: 'The time of the last use of tokens is old. Follows from a database that is away.',
  limiter_slot:
    'An attempt counts although it should not, until its window ends. Follows from a database that is away.',
  live_check_failed: 'Connections could not be compared with the database; it is tried again within 25 s.',
  log_lines_dropped:
    'The reader of this log was too slow and lines are missing. Make it faster, or log less by `CELLKEEP_LOG_LEVEL`.',
  migration_failed:
    'A migration in the background failed and is tried again; `cellkeep migrate status` shows what it waits for.',
  migration_waits:
    'Another process migrates the database; `cellkeep migrate status` shows it. Nothing to do.',
  node_heartbeat: 'The row of this node in `cellkeep nodes` is old. It serves all the same.',
  node_differs: 'Settings that nodes must share differ. `cellkeep nodes` names them.',
  output_flaw: 'A method answers something else than it declares. Correct its handler or its `output`.',
  provider_refused:
    'A sign-in by a provider was refused; the line has the cause. If it repeats, check the settings there and here.',
  refused: 'A request was refused for a cause below it, which the line shows: most often the database.',
  replica_down:
    'A replica is behind, away, or no standby of this database; the primary answers meanwhile. The line says why; `cellkeep doctor` checks each.',
  request_failed:
    'A bug: the caller got `internal_error`. The line has the stack; report it, or correct your handler.',
  schema_newer:
    'A newer version has migrated the database, and this one serves on it. Finish the roll-out, or go back on purpose.',
  sealed_lost: 'No key of `CELLKEEP_SECRET_KEYS` opens a secret. Put the key back that sealed it.',
  shutdown_cut:
    'The stop took longer than `CELLKEEP_SHUTDOWN_TIMEOUT_MS`, or a part failed to close. Clients saw cut requests.',
  signals_lost:
    'Nodes did not hear each other for a while; they catch up within 30 s. If it stays, the connection of the bus is cut.',
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

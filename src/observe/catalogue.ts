import { bus, requests, sizes, statements } from './buckets.ts'

/**
 * Every metric, without its prefix `cellkeep_`. The values of a label are a closed set, known at the start, and never
 * ids, names, addresses, paths as sent, or messages. Combinations beyond `max` are counted as `other`, so that a node
 * has 3000 series at most.
 */
export type Metric = {
  type: 'counter' | 'gauge' | 'histogram' | 'summary'
  help: string
  labels: readonly string[]
  buckets?: readonly number[]
  max?: number
}

const counter = (max: number, help: string, ...labels: string[]) =>
  ({ type: 'counter', help, labels, max }) as const
const gauge = (help: string, ...labels: string[]) => ({ type: 'gauge', help, labels }) as const
/** Prometheus reserves the label `quantile` for this type. */
const summary = (help: string) => ({ type: 'summary', help, labels: ['quantile'] }) as const
const histogram = (max: number, help: string, buckets: readonly number[], ...labels: string[]) =>
  ({ type: 'histogram', help, labels, buckets, max }) as const

export const catalogue = {
  build_info: gauge('The version that runs; always 1.', 'version', 'node_version', 'schema'),
  readiness: gauge('1 for the present state of readiness: ok, or why not.', 'reason'),
  event_loop_delay_seconds: summary('Delay of the event loop over the last 10 s.'),

  http_requests_total: counter(80, 'HTTP requests that were answered or cut.', 'route', 'method', 'outcome'),
  http_request_seconds: histogram(
    25,
    'Time until an HTTP request was answered.',
    requests,
    'route',
    'method',
    'outcome',
  ),
  rpc_requests_total: counter(250, 'Calls of methods, on every surface.', 'method', 'reason', 'surface'),
  rpc_duration_seconds: histogram(45, 'Time that calls took.', requests, 'method'),
  login_attempts_total: counter(30, 'Sign-ins with a password.', 'outcome'),
  rate_limited_total: counter(40, 'Refusals by a limiter.', 'limiter'),
  limiter_seconds: histogram(2, 'Time that limiters took to decide.', statements, 'store'),
  hash_queue_depth: gauge('Password hashes that wait for a thread.'),
  hash_queue_max: gauge('How many may wait; more are refused.'),
  hash_wait_seconds: histogram(1, 'Time that password hashes waited for a thread.', requests),

  db_query_seconds: histogram(1, 'Time that statements took, whatever their name.', statements),
  db_statement_seconds: histogram(
    50,
    'Time that statements took, with the way to the database.',
    statements,
    'statement',
    'target',
  ),
  db_breaker_open: gauge('1 while calls are refused at once, as no server takes writes.'),
  db_waiting: gauge('Calls that wait for a connection, or for a primary.'),
  db_timeline: gauge('Timeline of the primary; each fail-over begins another.'),
  db_sync_standbys: gauge(
    'Synchronous standbys of the primary; only where it asks for some and the role has pg_monitor.',
  ),
  db_skew_seconds: gauge('How far the clock of this machine is ahead of that of the database.'),
  db_pool: gauge('Pooled connections, and requests that wait for one.', 'state', 'target'),
  db_connect_total: counter(
    6,
    'Attempts to connect: used, failed, or why a server that answered was not used.',
    'outcome',
  ),
  db_outcome_unknown_total: counter(1, 'Commits whose answer was lost.'),
  db_repeats_total: counter(5, 'Transactions and reads that were repeated.', 'cause'),
  replica_lag_seconds: gauge(
    'Time until a replica, by its place in the list, had what was committed.',
    'replica',
  ),
  replica_reads_total: counter(
    30,
    'Reads that were sent to a replica: served, behind, failed. Those that were not served went to the primary.',
    'replica',
    'outcome',
  ),
  batch_size: histogram(4, 'Calls that shared a statement.', sizes, 'batch'),

  idempotency_total: counter(
    5,
    'Calls under an idempotency key, by what became of them. A call that waited for another counts twice.',
    'outcome',
  ),

  bus_up: gauge('1 while this node hears the signals of the others.'),
  bus_lag_seconds: histogram(1, 'Time until the node heard the signal that it sent to itself.', bus),
  bus_signals_total: counter(6, 'Signals between nodes.', 'direction', 'outcome'),

  live_connections: gauge('Open WebSockets and audit streams.', 'kind'),
  live_closed_total: counter(20, 'WebSockets and audit streams that ended.', 'kind', 'reason'),
  revocation_close_seconds: histogram(
    1,
    'Time from the commit of a revocation until its connections were told.',
    bus,
  ),
  stream_lag_seconds: histogram(1, 'Age of audit rows when the streams got them.', bus),

  audit_insert_failures_total: counter(1, 'Writes of audit rows that failed, wholly or in part.'),
  audit_backlog_rows: gauge('Audit rows that wait for their number, up to 10,000.'),
  audit_backlog_seconds: gauge('Age of the oldest of them.'),
  audit_partitions_ahead: gauge('Partitions of the audit log behind the one that the next row goes into.'),
  output_flaws_total: counter(
    1,
    'Results that were checked and break the declared output of their method or route.',
  ),
  effect_failures_total: counter(3, 'Effects after a commit that failed.', 'kind'),
  messages_total: counter(25, 'Deliveries of messages that were tried.', 'purpose', 'outcome'),
  migration_pending: gauge('Migration steps that this version has and the database lacks.', 'kind'),
  job_runs_total: counter(20, 'Runs of periodic work.', 'job', 'outcome'),
  job_seconds: histogram(6, 'Time that periodic work took.', bus, 'job'),
  job_rows_total: counter(8, 'Rows that periodic work removed or changed.', 'job'),
} satisfies Record<string, Metric>

export type MetricName = keyof typeof catalogue
export type Gauge = NamesOf<'gauge' | 'summary'>
export type Counted = NamesOf<'counter'>
export type Observed = NamesOf<'histogram'>
type NamesOf<T> = {
  [K in MetricName]: (typeof catalogue)[K]['type'] extends T ? K : never
}[MetricName]

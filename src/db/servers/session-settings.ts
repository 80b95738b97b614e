import type pg from 'pg'
import { wireTypes } from '../sql.ts'
import type { Limits } from './admission.ts'
import { type Connection, clientConfig } from './connection.ts'

/** The longest that a transaction may live. Enforced here, as PostgreSQL before 17 has no setting for it. */
export const transactionLimitMs = 30_000
/** A server still silent this long after the statement timeout counts as dead. */
const silenceMs = 5_000

/**
 * How long a server waits for a client to acknowledge or to read an answer. Otherwise one that is sending when the
 * connection is lost keeps its transaction for a quarter of an hour, whatever its other limits. This process drops a
 * connection sooner than it leaves a result unread for so long.
 */
const unreadMs = (statementTimeoutMs: number): number => Math.max(60_000, statementTimeoutMs + 2 * silenceMs)

/** Statements are short and pages cached: JIT and the default cost of random reads only slow them down. */
export const planning = '-c jit=off -c random_page_cost=1.1'

type Timed = { statementTimeoutMs: number }

export const limitsOf = ({ connection, statementTimeoutMs }: Timed & { connection: Connection }): Limits => ({
  statementMs: statementTimeoutMs,
  idleMs: transactionLimitMs,
  schema: connection.schema,
})

export const configOf = (one: Connection, { statementTimeoutMs }: Timed, more = ''): pg.ClientConfig => ({
  application_name: 'cellkeep',
  ...clientConfig(
    one,
    `-c TimeZone=UTC ${planning} -c statement_timeout=${statementTimeoutMs} -c idle_in_transaction_session_timeout=${transactionLimitMs} -c tcp_user_timeout=${unreadMs(statementTimeoutMs)} ${more}`.trim(),
  ),
  pipeline: true,
  types: wireTypes,
  query_timeout: statementTimeoutMs + silenceMs,
})

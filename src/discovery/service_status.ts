import { z } from 'zod'
import { query } from '../core/declare.ts'
import { version } from '../wire/version.ts'

export const service_status = query({
  doc: 'The state of the node that answers: what it has answered and refused since its start, its connections and those to the database.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  output: z.object({
    version: z.string(),
    node: z.string(),
    started_at: z.string(),
    /** Requests and messages of sockets. */
    requests: z.int(),
    /** Refusals by reason; `rate_limited` are those of limiters. */
    refusals: z.record(z.string(), z.int()),
    sockets: z.int(),
    streams: z.int(),
    max_connections: z.int(),
    database: z.object({ open: z.int(), idle: z.int(), waiting: z.int(), max: z.int() }),
    audit_rows_lost: z.int(),
  }),
  handler: async (_input, { app: { tally, hub, db, audit, config } }) => ({
    version,
    node: process.version,
    started_at: tally.started_at,
    requests: tally.requests,
    refusals: Object.fromEntries([...tally.refusals].sort()),
    ...hub.count(),
    max_connections: config.max_connections,
    database: { ...db.load(), max: config.database_pool_max },
    audit_rows_lost: audit.lost,
  }),
})

import type { DaemonTokenState } from '../auth/daemon-token.ts'
import { randomToken } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { sql } from '../db/db.ts'
import { expectedColumns } from '../db/migration/expected-columns.ts'
import { createLimiters, limiterStore } from '../limits/limiters.ts'
import { type Log, silentLog } from '../log/log.ts'

/** Readers of the audit log continue from the number they have. */
const kept = ['schema_migration', 'audit_position', 'cluster']
/** Tables of one row, which the migrations make. */
const single = ['bootstrap_lock', 'app_settings']

/** Empties the database of a test service and what the service remembers of it. */
export async function resetService(app: App): Promise<void> {
  const { config, db, log } = app
  await Promise.all([app.lastUsed.flush(), app.audit.flush()])
  const tables = [...expectedColumns().keys()].filter((table) => !kept.includes(table))
  await db.transaction(async (tx) => {
    const owned = await tx.rows<{ name: string }>(sql`
      select distinct conrelid::regclass::text as name from pg_constraint
      where contype = 'f' and confrelid = any(${tables}::regclass[]) and conrelid <> all (${tables}::regclass[])`)
    if (owned.length > 0)
      await tx.run(sql`truncate ${sql.raw(owned.map(({ name }) => name).join(', '))} cascade`)
    // Much faster than truncate, which makes new files for every table and index.
    await tx.run(
      sql`with ${sql.raw(tables.map((table) => `${table}_gone as (delete from ${table})`).join(', '))} select`,
    )
    for (const table of single) await tx.run(sql`insert into ${sql.raw(table)} (id) values (1)`)
  })
  const fresh: { -readonly [K in 'limiters']: App[K] } = app
  fresh.limiters = createLimiters(config, limiterStore(config, db, log), app.observer)
  await app.hub.check()
}

/**
 * The log of a test service, unless the test gives one. It writes the errors behind `internal_error`, and other
 * unexpected failures, to the output of the test, with stack and causes.
 */
export const errorLog: Log = {
  ...silentLog,
  error: ({ err, ...rest }, text) => {
    console.error(`cellkeep: ${text}`, ...(err === undefined ? [rest] : [err]))
  },
}

/** Makes daemon tokens for tests and holds the state that validates them. */
export type TestDaemonToken = DaemonTokenState & {
  /** Makes a new current token. The previous one stays valid, older ones do not. */
  rotate(): string
}

export function testDaemonToken(): TestDaemonToken {
  const state: TestDaemonToken = {
    current: randomToken(),
    rotate: () => {
      state.previous = state.current
      state.current = randomToken()
      return state.current
    },
  }
  return state
}

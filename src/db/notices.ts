import type pg from 'pg'

/** The notices that a connection received. */
type Notices = { isUnconfirmed: boolean }

const known = new WeakMap<pg.Client, Notices>()

/**
 * PostgreSQL answers a COMMIT with success even if its wait for the synchronous standby was cancelled, and adds a
 * warning. Then `isUnconfirmed` is true: this server holds the commit alone, and a fail-over loses it.
 */
export function noticesOf(client: pg.Client): Notices {
  const before = known.get(client)
  if (before) return before
  const notices = { isUnconfirmed: false }
  known.set(client, notices)
  client.on('notice', ({ code, routine }) => {
    // RAISE WARNING in a trigger of the consumer has the same code.
    if (code === '01000' && routine !== 'exec_stmt_raise') notices.isUnconfirmed = true
  })
  return notices
}

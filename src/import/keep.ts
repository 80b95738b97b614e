import { noPassword } from '../auth/password.ts'
import type { App } from '../core/app.ts'
import { operate } from '../core/operate.ts'
import { hasReason, refusal } from '../errors.ts'
import type { Row } from './line.ts'
import { type Written, writeBatch } from './write.ts'

/** Makes accounts from rows whose external ids differ. */
export type Write = (rows: readonly Row[]) => Promise<Written>

type Options = { source: string; on_conflict: 'skip' | 'fail' }

/** Writes the accounts and their audit rows in one transaction. */
export function keeping(
  app: App,
  { source, on_conflict, via, floorMs }: Options & { via: string; floorMs(): number },
): Write {
  return async (given) => {
    const rows = flagged(app, given)
    let clash: Written | undefined
    try {
      return await operate(app, 'account_create', { via }, async ({ db, audit }) => {
        const written = await writeBatch(db, { source, rows, floorMs: floorMs() })
        if (on_conflict === 'fail' && written.taken.length > 0) {
          clash = { made: [], taken: written.taken }
          throw refusal('username_taken')
        }
        for (const { id } of written.made)
          audit('account_create', { imported: true, via }, { target_account_id: id })
        return written
      })
    } catch (error) {
      if (clash && hasReason(error, 'username_taken')) return clash
      throw error
    }
  }
}

/** Writes and rolls back, and remembers what earlier lines would have taken. */
export function trying(app: App, { source }: Options): Write {
  const seen = {
    external_id: new Set<string>(),
    username: new Set<string>(),
    email_key: new Set<string | null>(),
  }
  const undo = new Error('A dry run keeps nothing')
  return async (given) => {
    const fresh = given.filter((row) => !seen.external_id.has(row.external_id))
    const taken = fresh.flatMap(({ line, username, email_key }): Written['taken'] => {
      if (seen.username.has(username)) return [{ line, reason: 'username_taken' }]
      return seen.email_key.has(email_key) ? [{ line, reason: 'email_taken' }] : []
    })
    const clashing = new Set(taken.map(({ line }) => line))
    const rows = flagged(
      app,
      fresh.filter(({ line }) => !clashing.has(line)),
    )
    let written: Written = { made: [], taken: [] }
    await app.db
      .transaction(async (tx) => {
        written = await writeBatch(tx, { source, rows, floorMs: 0 })
        throw undo
      })
      .catch((error) => {
        if (error !== undo) throw error
      })
    const made = new Set(written.made.map(({ line }) => line))
    for (const { line, external_id, username, email_key } of rows) {
      if (!made.has(line)) continue
      seen.external_id.add(external_id)
      seen.username.add(username)
      if (email_key !== null) seen.email_key.add(email_key)
    }
    return { made: written.made, taken: [...taken, ...written.taken] }
  }
}

/** Flags hashes that the next login replaces, whatever their format. */
const flagged = ({ passwords }: App, rows: readonly Row[]) =>
  rows.map((row) => ({
    ...row,
    hash_foreign: row.password_hash !== noPassword && passwords.isOutdated(row.password_hash),
  }))

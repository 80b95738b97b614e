import type { Audit, Envelope } from '../audit/audit.ts'
import type { EventType } from '../events.ts'
import type { App } from './app.ts'
import { mutate, type Work } from './mutate.ts'

/**
 * Who acts when there is no request: an operator command, or a consumer's library call that may name the
 * actor on whose behalf it calls.
 */
export type Operator = {
  /** `cli`, or the library caller's `^[a-z_]{1,32}$`; stands in the metadata of every row. */
  via: string
  actor_id?: string | null
  account_id?: string | null
  ip?: string | null
  /**
   * The transaction to work in: what a mutation's handler or `service.transaction` was given. Rows and
   * notifications then wait for its commit, and vanish with its rollback.
   */
  within?: Work
}

export type Operating = Work & {
  /** The metadata keys of rows without a request: `credential_type: null` and `via`. */
  detail: { credential_type: null; via: string }
  /** The actor on whose behalf it is done, for columns such as `updated_by`. */
  by: string | null
}

/** A mutation without a request: the same transaction, audit and effects as behind a method. */
export async function operate<T>(
  app: App,
  event: EventType,
  { via, actor_id = null, account_id = null, ip = null, within }: Operator,
  work: (tools: Operating) => Promise<T>,
): Promise<T> {
  const envelope: Envelope = { actor_id, account_id, target_actor_id: null, target_account_id: null, ip }
  const detail = { credential_type: null, via }
  if (!within)
    return await mutate(app, event, { envelope, via }, (tools) => work({ ...tools, detail, by: actor_id }))
  const audit: Audit = (type, metadata, own) => within.audit(type, metadata, { ...envelope, ...own })
  return await work({ ...within, audit, detail, by: actor_id })
}

/** It stands in the audit log, where nothing free-form may. */
export function checkVia(via: string): void {
  if (!/^[a-z_]{1,32}$/.test(via)) throw new TypeError('`via` must be 1 to 32 characters of a-z and _.')
}

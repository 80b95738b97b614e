import { type Audit, type AuditSubject, noSubject } from '../audit/audit.ts'
import { givenIp } from '../config/ip.ts'
import { ServiceError } from '../errors.ts'
import type { EventType } from '../events.ts'
import { Uuid } from '../wire/types.ts'
import type { App } from './app.ts'
import { mutateAtOnce, subjectOf, type Work } from './mutate.ts'
import { singleWithin } from './single.ts'

/**
 * Who acts when there is no request: an operator command or a library call, which may name the actor that it acts for.
 */
export type Operator = {
  /** `cli`, or the library caller's own word (`^[a-z_]{1,32}$`); recorded in the metadata of every audit row. */
  via: string
  actor_id?: string | null | undefined
  account_id?: string | null | undefined
  ip?: string | null | undefined
  /**
   * The transaction to join: the tools of a mutation's handler or of `service.transaction`. Audit rows and
   * notifications then wait for its commit and are dropped with its rollback.
   */
  within?: Work | undefined
}

export type Operating = Work & {
  /** The metadata of audit rows that have no request. */
  detail: { credential_type: null; via: string }
  /** The actor it acts for, for columns such as `updated_by`. */
  by: string | null
}

/** In the metadata of an audit row: the operator or library call that caused it; left out for requests. */
export type Via = { via?: string }
/** The same with the type of the credential, which is null for operator and library calls. */
export type Detail = Via & { credential_type: string | null }

export const onlyVia = ({ via }: Via): Via => (via === undefined ? {} : { via })

/** A mutation without a request, with the same transaction, audit rows and effects as a method. */
export async function operate<T>(
  app: App,
  event: EventType,
  { via, actor_id = null, account_id = null, ip = null, within }: Operator,
  work: (tools: Operating) => Promise<T>,
): Promise<T> {
  const subject = { ...noSubject, actor_id, account_id, ip }
  const own = { detail: { credential_type: null, via }, by: actor_id }
  const run = (tools: Work): Promise<T> => work({ ...tools, ...own })
  return await (within
    ? joinTransaction(within, subject, run)
    : mutateAtOnce(app, event, { subject, via }, run))
}

/** Runs work in a transaction that is already open; its audit rows name this subject. */
export async function joinTransaction<T>(
  within: Work,
  subject: AuditSubject,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  const { db, notify, afterCommit } = within
  const audit: Audit = (type, metadata, own) => within.audit(type, metadata, subjectOf(subject, own))
  try {
    return await work({ db, audit, single: singleWithin(db, audit), notify, afterCommit })
  } catch (error) {
    // The outer transaction writes the failure row, and would otherwise name its own caller in it.
    if (error instanceof ServiceError && error.failureRow)
      error.failureRow.subject = subjectOf(subject, error.failureRow.subject)
    throw error
  }
}

/** The operator as the audit log and the sessions keep it. Adds no key, because an import refuses unknown ones. */
export function checkOperator<T extends Partial<Operator>>(operator: T): T {
  checkVia(operator.via)
  const given = Object.entries(givenSubject(operator)).filter(([key]) => key in operator)
  return { ...operator, ...Object.fromEntries(given) }
}

/** Whom the code of an embedder names. The audit log could not keep an id that is no UUID. */
export function givenSubject({ actor_id, account_id, ip }: Partial<Operator>) {
  return {
    actor_id: givenId('actor_id', actor_id),
    account_id: givenId('account_id', account_id),
    ip: ip == null ? null : givenIp(ip),
  }
}

function givenId(key: string, id: string | null | undefined): string | null {
  if (id == null) return null
  const parsed = Uuid.safeParse(id)
  if (!parsed.success) throw new TypeError(`\`${key}\` must be a UUID, or left out.`)
  return parsed.data
}

/** `via` ends up in the audit log, which holds no free-form text. */
export function checkVia(via: unknown): void {
  if (typeof via !== 'string' || !/^[a-z_]{1,32}$/.test(via))
    throw new TypeError('`via` must be 1 to 32 characters of a-z and _.')
}

import { hash } from 'node:crypto'
import type { Pair } from '../audit/write.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { type ErrorData, invalidRequest, refusal, ServiceError } from '../errors.ts'
import { isPlainObject } from '../wire/input.ts'
import { JsonText } from '../wire/json-text.ts'
import type { App } from './app.ts'
import type { WiredMethod } from './method.ts'

const keyForm = /^[A-Za-z0-9_-]{16,64}$/
/** Max live keys of one account. */
const keysMax = 10_000
/** A longer reply is not kept. */
const replyMaxBytes = 65_536

/** Whether calls of the method may have a key: keys belong to accounts. */
export const takesKey = ({ side_effects, auth }: Pick<WiredMethod, 'side_effects' | 'auth'>): boolean =>
  side_effects && auth.account === 'required'

/** Refuses a key that is ill-formed, or that comes with a method that takes none. */
export function checkKey(key: unknown, action: WiredMethod): asserts key is string {
  if (!takesKey(action)) throw invalidRequest('idempotency_not_supported')
  if (typeof key !== 'string' || !keyForm.test(key)) throw invalidRequest('idempotency_key')
}

/** A mutation under a key of its account. */
type Keyed = {
  key: string
  action: WiredMethod
  /** The caller, who has an account. */
  subject: Pair
  /** The input as parsed by the schema. */
  input: unknown
  /** Marked when the answer comes from an earlier call. */
  trace: { replayed?: true }
}

/** The tools of a mutation that `once` needs. */
type Tools = { db: Queryable; afterCommit(effect: () => void): void }

/**
 * Carries out a mutation, unless it was carried out under its key: then gives the earlier answer again, a result as text
 * or a refusal. Must be the first statement of the transaction, so that a call that waits for the key holds no
 * other lock.
 */
export async function once(
  app: App,
  { db, afterCommit }: Tools,
  keyed: Keyed,
  act: () => Promise<unknown>,
): Promise<unknown> {
  const count = (outcome: 'stored' | 'replayed' | 'reused' | 'waited'): void =>
    app.observer.count('idempotency_total', outcome)
  const row = rowOf(keyed)
  const done = await claim(db, row)
  if (done?.has_waited) count('waited')
  if (done && !done.is_same) {
    count('reused')
    throw refusal('idempotency_key_reused')
  }
  if (done) {
    count('replayed')
    if (done.reply === null) throw refusal('idempotency_replayed', { completed_at: done.completed_at })
    keyed.trace.replayed = true
    return replayed(done.reply)
  }
  const keep = (reply: string | null): void => {
    afterCommit(() => count('stored'))
    const kept = reply !== null && Buffer.byteLength(reply) <= replyMaxBytes ? reply : null
    // Not awaited, so that it shares the round trip of COMMIT, which fails if this statement fails. Inserts nothing for
    // a purged account.
    db.run(sql`
      update idempotency_key set reply = to_jsonb(${kept}::text), created_at = clock_timestamp()
      where ${isRow(row)} and exists (select from account where id = account_id)`).catch(() => {})
  }
  try {
    const result = await act()
    const text = result instanceof JsonText ? result.text : JSON.stringify(result)
    keep(keyed.action.secret_reply || text === undefined ? null : `${resultStart}${text}}`)
    return result
  } catch (error) {
    if (error instanceof ServiceError && error.commits) keep(refusalText(error))
    throw error
  }
}

type Row = { account_id: string; key_hash: Buffer; request_hash: Buffer }
type Done = { is_same: boolean; completed_at: string; has_waited: boolean; reply: string | null }
type StoredRefusal = { code: number; status: number; data: ErrorData; text?: string }

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')

/**
 * The key is part of the request hash, so that nobody who lacks the key can test guessed inputs against the stored
 * hash.
 */
function rowOf({ key, action, subject, input }: Keyed): Row {
  const request = JSON.stringify([key, action.method, subject.actor_id, input], inOrder)
  return { account_id: subject.account_id as string, key_hash: sha256(key), request_hash: sha256(request) }
}

/** For `JSON.stringify`: a consumer's schema may produce values that JSON cannot represent. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Map || value instanceof Set) return [...value]
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const isRow = ({ account_id, key_hash }: Row): Sql =>
  sql`account_id = ${account_id}::uuid and key_hash = ${key_hash}::bytea`

const countUpTo = (max: number, which: Sql): Sql => sql`(
  select count(*) from (
    select from idempotency_key k where k.account_id = sent.account_id and expires_at > now() and ${which}
    limit ${sql.raw(max)}
  ) counted)`

/**
 * Whether the account has room for another key. Hashes are evenly spread, so counting every 32nd is enough for most
 * accounts; only those near the max have all of their keys counted.
 */
const hasRoom = sql`(
  ${countUpTo(200, sql`k.key_hash < '\\x08'`)} < 200
  or ${countUpTo(keysMax, sql`true`)} < ${sql.raw(keysMax)})`

/**
 * Takes the key for this transaction, or resolves to the earlier outcome; waits for a transaction that holds the key.
 */
async function claim(db: Queryable, row: Row): Promise<Done | undefined> {
  const { account_id, key_hash, request_hash } = row
  const isTaken = await db.first(sql`
    insert into idempotency_key as k (account_id, key_hash, request_hash)
    select * from (select ${account_id}::uuid as account_id, ${key_hash}::bytea, ${request_hash}::bytea) sent
    where ${hasRoom}
    on conflict (account_id, key_hash) do update
      set request_hash = excluded.request_hash, reply = null,
        created_at = excluded.created_at, expires_at = excluded.expires_at
      where k.expires_at <= now()
    returning 1`)
  if (isTaken) return undefined
  const done = await db.first<Done>(sql`
    select request_hash = ${request_hash}::bytea as is_same, created_at as completed_at,
      created_at > now() as has_waited, reply #>> '{}' as reply
    from idempotency_key where ${isRow(row)} and expires_at > now()`)
  if (done) return done
  const { retry_after } = await db.one<{ retry_after: number }>(sql`
    select coalesce(ceil(extract(epoch from min(expires_at) - now())), 1)::int as retry_after
    from idempotency_key where account_id = ${account_id}::uuid and expires_at > now()`)
  throw refusal('rate_limited', { retry_after })
}

const resultStart = '{"result":'

function replayed(reply: string): JsonText {
  // As text: parsing and serialising it again could change it.
  if (reply.startsWith(resultStart)) return new JsonText(reply.slice(resultStart.length, -1))
  const { code, status, data, text }: StoredRefusal = JSON.parse(reply).error
  const refused = new ServiceError(code, data, status)
  if (text !== undefined) refused.text = text
  throw refused
}

const refusalText = ({ code, status, data, text }: ServiceError): string =>
  JSON.stringify({ error: { code, status, data, text } })

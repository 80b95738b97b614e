import { randomBytes, randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomToken, sha256Hex } from '../../auth/secrets.ts'
import { storedScope } from '../../auth/token-scope.ts'
import type { Dropped } from '../../backup/constraints.ts'
import { restoreBackup } from '../../backup/restore.ts'
import { resolveOptions } from '../../config/config.ts'
import { type Database, openDatabase, sql } from '../../db/db.ts'
import type { Connection } from '../../db/servers/connection.ts'
import { isServerFault } from '../../db/servers/failure.ts'
import { locate } from '../../db/servers/locate.ts'
import { StartError } from '../../errors.ts'
import type { Log } from '../../log/log.ts'
import { composeService, type Service } from '../../service.ts'
import { missingAuthority, readAuthority } from '../../verify/authority.ts'
import { judge } from '../../verify/judge.ts'
import type { Judgement } from '../../verify/rule.ts'

export type Verified = { rows: number; created_at: string | null; findings: Judgement[] }

type VerifyOptions = {
  log: Log
  onBytes?: (read: number, of: number) => void
  onRows?: (rows: number) => void
}

const remedy =
  'Keep an earlier backup, and run `cellkeep doctor --deep` on the database that this one was made from.'

const refusals: Record<string, string> = {
  backup_unreadable: 'V1',
  backup_damaged: 'V1',
  backup_of_newer_version: 'V2',
  migration_failed: 'V2',
}

/** Refusals of the database to restore into. They say nothing about the backup, so their code is not that of findings. */
const ofTarget = ['database_not_empty', 'database_in_use', 'database_newer_than_backup']

/** Restores a backup into an empty database and checks the result. */
export async function verifyBackup(
  server: Connection,
  file: string,
  { log, onBytes, onRows }: VerifyOptions,
): Promise<Verified> {
  const connection = await locate(server, null)
  const broken: Dropped[] = []
  let restored: { rows: number; created_at: string }
  try {
    restored = await restoreBackup(connection, file, { onBytes, breaking: (rule) => broken.push(rule) })
  } catch (error) {
    const check = error instanceof StartError && refusals[error.reason]
    if (error instanceof StartError && ofTarget.includes(error.reason))
      throw new StartError(error.reason, error.message, 3)
    if (!check || isServerFault(error.cause)) throw error
    const { reason: finding, message: what } = error
    return { rows: 0, created_at: null, findings: [{ check, finding, what, remedy }] }
  }
  const db = openDatabase({ connection, poolMax: 2, statementTimeoutMs: 600_000, onError: () => {} })
  try {
    // Rows that violate a constraint are loaded, so that the rules below can name each of them.
    const keys = broken.filter(({ isKey }) => isKey)
    const gone = keys.map(({ table, name }) => ({
      check: 'V3',
      finding: 'constraint_broken',
      what: `Table ${table} has duplicate rows, which violate ${name}.`,
      remedy,
    }))
    const held = missingAuthority(await readAuthority(db)).map((one) => ({ check: 'V5', ...one }))
    const judged = await judge(db.readOnly, { remedy, ...(onRows && { onRows }) })
    const served = await nodeFindings(connection, db, log)
    return { ...restored, findings: [...gone, ...held, ...judged, ...served] }
  } finally {
    await db.close()
  }
}

/** Starts a node on the database and compares the lists of three actors with the access rule. */
async function nodeFindings(connection: Connection, db: Database, log: Log): Promise<Judgement[]> {
  const found = (finding: string, what: string): Judgement => ({ check: 'V12', finding, what, remedy })
  const settings = {
    data_dir: join(tmpdir(), randomUUID()),
    bootstrap: 'disabled',
    migrate: 'check',
  } as const
  let service: Service
  try {
    const deps = { connection, cookieKeys: [randomToken()], secretKeys: [randomToken()], log }
    service = await composeService(resolveOptions(settings), deps)
  } catch (error) {
    return [
      found('node_fails', `A server does not start on the restored database: ${(error as Error).message}`),
    ]
  }
  try {
    const ready = await service.fetch(new Request('http://localhost/ready'), { address: '127.0.0.1' })
    if (ready.status !== 200)
      return [found('node_fails', `A server on the restored database is not ready: ${await ready.text()}`)]
    const differing: string[] = []
    for (const one of await someActors(db)) {
      const listed = await listedTo(service, db, one)
      if (listed.join() !== (await visibleTo(db, one.actor_id)).join()) differing.push(one.actor_id)
    }
    if (differing.length === 0) return []
    return [
      found(
        'access_differs',
        `cell_list shows other cells than the access rule allows to ${differing.join(', ')}.`,
      ),
    ]
  } finally {
    await service.close()
  }
}

type Someone = { actor_id: string; account_id: string }

/** An admin, an actor with whom a cell is shared, and an owner; fewer if some do not exist. */
const someActors = (db: Database): Promise<Someone[]> =>
  db.readOnly.rows<Someone>(sql`
    with live as (
      select actor.id as actor_id, account_id from actor join account on account.id = account_id
      where actor.deleted_at is null and account.deleted_at is null
    )
    (select live.* from live join role_grant g using (actor_id) where role = 'admin' order by actor_id limit 1)
    union (select live.* from live join cell_grant using (actor_id) order by actor_id limit 1)
    union (select live.* from live join cell on created_by = actor_id order by actor_id limit 1)
    union (select * from live order by actor_id limit 1) limit 3`)

const pages = 5
const perPage = 200

/** The first pages of the list, read with a temporary token. */
async function listedTo(
  service: Service,
  db: Database,
  { actor_id, account_id }: Someone,
): Promise<string[]> {
  const token = `secret_svc_token_${randomToken()}`
  const id = `tok_${randomBytes(9).toString('base64url')}`
  await db.run(sql`
    insert into api_token (id, account_id, name, token_hash, scope)
    values (${id}, ${account_id}::uuid, 'verify', ${sha256Hex(token)}, ${storedScope({ kind: 'read_only' })}::jsonb)`)
  try {
    const ids: string[] = []
    let cursor: string | null = null
    for (let page = 0; page < pages; page++) {
      const params = { acting: actor_id, limit: perPage, cursor }
      const caller = { headers: { authorization: `Bearer ${token}` } }
      const answer: { cells: { id: string }[]; next_cursor: string | null } = await service.call(
        'cell_list',
        params as { limit: number },
        caller,
      )
      ids.push(...answer.cells.map((cell) => cell.id))
      cursor = answer.next_cursor
      // A page of large cells ends early; the order of the rest is the same.
      if (cursor === null) break
    }
    return ids
  } finally {
    await db.run(sql`delete from api_token where id = ${id}`)
  }
}

/** The access rule written plainly a second time, sharing no code with the one under test. */
const visibleTo = async (db: Database, actor_id: string): Promise<string[]> => {
  const rows = await db.readOnly.rows<{ id: string }>(sql`
    with held as (
      select role, scope_id from role_grant where actor_id = ${actor_id}::uuid and revoked_at is null
        and closed_at is null and (expires_at is null or expires_at > now())
    )
    select id from cell c where deleted_at is null and (
      visibility = 'public' or created_by = ${actor_id}::uuid
      or exists (select from held where role = 'admin' and scope_id is null)
      or exists (select from cell_grant k where k.cell_id = c.id and k.actor_id = ${actor_id}::uuid)
      or exists (select from cell_grant k join held on held.role = k.role
          and (k.scope_id is null or k.scope_id = held.scope_id) where k.cell_id = c.id))
    order by created_at desc, id desc limit ${sql.raw(pages * perPage)}`)
  return rows.map(({ id }) => id)
}

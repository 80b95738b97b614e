import { rm } from 'node:fs/promises'
import { activeGrant } from '../../auth/active-grant.ts'
import { secondFactorActive } from '../../auth/ways-in.ts'
import type { Config } from '../../config/config.ts'
import { type Database, openDatabase, sql } from '../../db/db.ts'
import { migrate } from '../../db/migration/migrate.ts'
import { replicasOf } from '../../db/servers/connection.ts'
import { createReadiness } from '../../db/servers/ready.ts'
import { StartError } from '../../errors.ts'
import { readPrivateFile } from '../../files/private-file.ts'
import { missingAuthority, readAuthority } from '../../verify/authority.ts'
import { judge } from '../../verify/judge.ts'
import type { Opened } from '../with-service.ts'
import { auditFindings } from './audit.ts'
import { connectionFindings, featureFindings, lockFindings } from './connection.ts'
import type { Finding, Fix } from './finding.ts'
import { grantFindings } from './grants.ts'
import { linkFindings } from './links.ts'
import { messageFindings } from './messages.ts'
import { nodeFindings } from './nodes.ts'
import { orphanedPasskeys } from './passkeys.ts'
import { replicaFindings } from './replicas.ts'
import { serverFindings } from './server.ts'

/**
 * Findings about the schema; if it is sound, also about roles, the audit log and e-mails, and with `sample` about rows.
 */
export async function databaseFindings(
  opened: Opened,
  deep: { sample: number | null; onRows: (rows: number) => void },
): Promise<Finding[]> {
  const locked = await lockFindings(opened)
  if (locked.length > 0) return locked
  const steps = await stepFindings(opened)
  if (steps.length > 0) return steps
  const { config, connection, log } = opened
  const unusable = await connectionFindings(opened)
  if (unusable.length > 0) return unusable
  const db = openDatabase({
    connection,
    hasNames: config.database_statements === 'named',
    poolMax: 2,
    statementTimeoutMs: config.statement_timeout_ms,
    onError: (error, what, event = 'db_lost') => {
      if (event !== 'replica_down') log.error({ event, err: error }, what)
    },
    replicas: replicasOf(config, connection),
  })
  try {
    const drift = await driftFindings(db)
    if (drift.length > 0) return drift
    return [
      ...(await featureFindings(opened)),
      ...(await serverFindings(db, opened)),
      ...(await authorityFindings(db, opened)),
      ...(await weakFindings(db, opened)),
      ...(await auditFindings(db)),
      ...(await emailFindings(db)),
      ...(await grantFindings(db, opened)),
      ...(await linkFindings(db, opened)),
      ...(await messageFindings(db, config)),
      ...(await importFindings(db, config)),
      ...(await orphanedPasskeys(db, opened)),
      ...(await nodeFindings(db)),
      ...(await replicaFindings(db, config)),
      ...(deep.sample === null
        ? []
        : await judge(db.replicas?.reads() ?? db.readOnly, {
            remedy,
            isGentle: true,
            sample: deep.sample,
            onRows: deep.onRows,
          })),
    ]
  } finally {
    await db.close()
  }
}

const remedy =
  'Cellkeep does not write such rows. Find out what did, compare the rows with a backup, and repair them with psql.'

async function stepFindings({ connection }: Opened): Promise<Finding[]> {
  try {
    await migrate(connection, { mode: 'check' })
    return []
  } catch (error) {
    if (!(error instanceof StartError) || error.reason === 'db_unreachable') throw error
    const pending = error.reason === 'migration_pending'
    const [what = '', ...more] = error.message.split(/(?<=[.)]) /)
    return [
      {
        finding: error.reason,
        what: pending ? what : error.message,
        remedy: pending ? more.join(' ') : 'Until this is resolved, do not run Cellkeep on this database.',
      },
    ]
  }
}

async function driftFindings(db: Database): Promise<Finding[]> {
  let missing: unknown
  const log = {
    error: (fields: Record<string, unknown>) => {
      missing = fields.missing
    },
  }
  const state = await createReadiness(db, { log }).check()
  if (state.ready) return []
  return [
    {
      finding: state.reason,
      what: `The database lacks what this version needs: ${Array.isArray(missing) ? missing.join(', ') : 'it cannot be read'}.`,
      remedy: 'The schema was changed by hand. Undo that change, or restore a backup into an empty database.',
    },
  ]
}

async function authorityFindings(db: Database, { config }: Opened): Promise<Finding[]> {
  const state = await readAuthority(db)
  const { bootstrapped, accounts } = state
  const token = await readPrivateFile(config.bootstrap_token_path)
  const path = config.bootstrap_token_path
  const findings: Finding[] = []
  const add = (finding: string, what: string, remedy: string, fix?: Fix): void =>
    void findings.push({ finding, what, remedy, ...(fix && { fix }) })

  if (!bootstrapped && !accounts) {
    if ('problem' in token && !token.missing)
      add(
        'bootstrap_token_unusable',
        `The bootstrap token at ${path} cannot be used: the file ${token.problem}.`,
        `${token.remedy ?? 'Repair it.'} If you did not create the file, delete it.`,
      )
    const byToken =
      'content' in token
        ? `Use the token in ${path}, as the start message shows, or run`
        : 'Run `cellkeep bootstrap-token reset` for a new token, or run'
    const way = config.bootstrap === 'live' ? byToken : 'Run'
    add(
      'not_bootstrapped',
      'There is no account yet.',
      `${way} \`cellkeep account create --username NAME --keeper\`.`,
    )
    return findings
  }
  if (bootstrapped && !('missing' in token))
    add(
      'bootstrap_token_left',
      `The bootstrap is done, but the token file ${path} still exists.`,
      `Delete it: \`rm ${path}\`.`,
      { does: `rm ${path}`, run: () => rm(path, { force: true }) },
    )
  return [...findings, ...missingAuthority(state)]
}

const namesShown = 20

const namesOf = (rows: readonly { username: string }[]): string =>
  [
    ...rows.slice(0, namesShown).map(({ username }) => username),
    ...(rows.length > namesShown ? ['others'] : []),
  ].join(', ')

/** Accounts whose role requires a second factor but which have none yet; their password alone enrols one. */
async function weakFindings(db: Database, { config }: Opened): Promise<Finding[]> {
  const { require_second_factor: roles } = config
  const rows = await db.rows<{ username: string }>(sql`
    select distinct account.username from role_grant g
      join actor on actor.id = g.actor_id join account on account.id = actor.account_id
    where g.role = any(${[...roles]}::text[]) and g.scope_id is null and ${activeGrant}
      and actor.deleted_at is null and account.deleted_at is null
      and not ${secondFactorActive(sql`account.id`)}
    order by account.username limit ${sql.raw(namesShown + 1)}`)
  if (rows.length === 0) return []
  return [
    {
      finding: 'second_factor_missing',
      what: `These accounts have no second factor, although their roles require one (require_second_factor): ${namesOf(rows)}.`,
      remedy:
        'Ask them to sign in and add one soon. Until then, anyone with their password can add one instead.',
    },
  ]
}

/** A key with a leading space marks an e-mail that differs from another account's only in case. */
async function emailFindings(db: Database): Promise<Finding[]> {
  const rows = await db.rows<{ username: string }>(sql`
    select username from account where email_key < '!' order by email_key limit ${sql.raw(namesShown + 1)}`)
  if (rows.length === 0) return []
  return [
    {
      finding: 'email_in_use',
      what: `The e-mails of these accounts differ from those of other accounts only in case, so they can sign in by username only: ${namesOf(rows)}.`,
      remedy: 'Set another e-mail for each, or none, with `cellkeep account set-email`.',
    },
  ]
}

async function importFindings(db: Database, { login_fail_floor_ms }: Config): Promise<Finding[]> {
  const { left, floor } = await db.one<{ left: number; floor: number | null }>(sql`
    select (select count(*) from account where hash_foreign) as left,
      (select import_floor_ms from app_settings where id = 1) as floor`)
  if (left === 0) return []
  const isSlower = login_fail_floor_ms > 0 && (floor ?? 0) > login_fail_floor_ms
  const cost = isSlower ? ` Because of them, every failed login takes at least ${floor} ms.` : ''
  return [
    {
      finding: 'foreign_hashes',
      what: `Accounts with a password hash of the system from which they were imported: ${left}.${cost}`,
      remedy:
        'The first login of each account replaces its hash. For people who do not come back, run `cellkeep account set-password` or delete the account.',
    },
  ]
}

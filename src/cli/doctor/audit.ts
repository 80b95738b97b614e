import { lossDays } from '../../audit/loss.ts'
import { type Database, sql } from '../../db/db.ts'
import type { Finding } from './finding.ts'

/** Checks whether audit rows can be written, and whether any were lost recently. */
export async function auditFindings(db: Database): Promise<Finding[]> {
  const fault = await writeFault(db)
  const loss = await db.readOnly.first<Loss>(sql`
    select lost_rows, cause, to_char(since at time zone 'UTC', ${format}) as since,
      to_char(last_at at time zone 'UTC', ${format}) as last_at
    from audit_loss where last_at > now() - make_interval(days => ${sql.raw(lossDays)})`)
  const findings: Finding[] = []
  if (fault !== undefined)
    findings.push({
      finding: 'audit_write_broken',
      what: `Audit rows cannot be written: ${fault}. Changes still work, but are not recorded.`,
      remedy:
        'If someone is locking or rebuilding audit_inbox, wait. If a function is missing or was changed, run its ' +
        '`create or replace function` from migrations/schema.sql of the package with psql.',
    })
  if (loss)
    findings.push({
      finding: 'audit_rows_lost',
      what: `Audit rows lost between ${loss.since} and ${loss.last_at}: ${loss.lost_rows}. Cause of the last loss: ${loss.cause}.`,
      remedy: `The log of the server lists them. This finding disappears after ${lossDays} days, or with \`delete from audit_loss\`.`,
    })
  return [...findings, ...(await partitionFindings(db))]
}

type Division = { partitions: number; next: number; is_held: boolean; is_divided: boolean }

/** More partitions than this slow every list down. */
const partitionsMax = 200

async function partitionFindings(db: Database): Promise<Finding[]> {
  const { partitions, next, is_held, is_divided } = await db.readOnly.one<Division>(sql`
    select count(lower)::int as partitions, seq + 1 as next,
      coalesce(bool_or(seq + 1 between lower and upper - 1), false) as is_held,
      exists (select from pg_partitioned_table where partrelid = 'audit_log'::regclass) as is_divided
    from audit_position left join audit_partitions() on true group by seq`)
  // A background step divides the log of an earlier version.
  if (!is_divided) return []
  const findings: Finding[] = []
  if (!is_held)
    findings.push({
      finding: 'partitions_missing',
      what: `The audit log has no partition for its next row, number ${next}. New rows wait in audit_inbox: nothing is lost, but no list shows them.`,
      remedy:
        'Run `select audit_partition(seq + 1) from audit_position` with psql as the database user of Cellkeep: the error says why. That user must own the tables and may create others in their schema.',
    })
  if (partitions > partitionsMax)
    findings.push({
      finding: 'partitions_many',
      what: `The audit log has ${partitions} partitions, and every list reads all of them.`,
      remedy:
        'Raise CELLKEEP_AUDIT_PARTITION_ROWS, which affects new partitions, or lower CELLKEEP_AUDIT_RETENTION_DAYS.',
    })
  return findings
}

type Loss = { lost_rows: number; cause: string; since: string; last_at: string }

const format = 'YYYY-MM-DD"T"HH24:MI:SS"Z"'

/** Writes a row as a mutation does, in a transaction that rolls back. Resolves to why it failed, or undefined. */
async function writeFault(db: Database): Promise<string | undefined> {
  const probe = JSON.stringify([{ event_type: 'login', outcome: 'failure' }])
  const undo = new Error('undone')
  let fault: string | undefined
  try {
    await db.transaction(async (tx) => {
      const answer = await tx.first<{ report: string | null }>(
        sql`select coalesce(audit_write_paired(${probe}::json), audit_write(${probe}::json)) as report`,
      )
      fault = answer?.report == null ? undefined : causeOf(answer.report)
      throw undo
    })
  } catch (error) {
    if (error !== undo) fault = (error as Error).message
  }
  return fault
}

function causeOf(report: string): string {
  try {
    return String((JSON.parse(report) as { cause: unknown }).cause)
  } catch {
    return 'the function audit_write() is not that of this version'
  }
}

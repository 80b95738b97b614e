import { lossDays } from '../../audit/loss.ts'
import { type Database, sql } from '../../db/db.ts'
import type { Finding } from './files.ts'

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
      what: `Audit rows cannot be written: ${fault}. Everything else works, but is not audited.`,
      remedy:
        'If someone is locking or rebuilding audit_log, wait. If a function is missing or was changed, run ' +
        '0003_audit.sql and then 0008_audit_emission.sql of the package’s migrations with psql; running them again is safe.',
    })
  if (loss)
    findings.push({
      finding: 'audit_rows_lost',
      what: `${loss.lost_rows} audit rows could not be written from ${loss.since} to ${loss.last_at}, the last for: ${loss.cause}.`,
      remedy: `The log of the service lists them. This finding stays for ${lossDays} days, or until \`delete from audit_loss\`.`,
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
    return 'the function audit_write() is not the one of this version'
  }
}

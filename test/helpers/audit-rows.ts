import { type Sql, sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'

type Columns = Partial<
  Record<
    | 'event_type'
    | 'outcome'
    | 'actor_id'
    | 'account_id'
    | 'target_actor_id'
    | 'target_account_id'
    | 'created_at'
    | 'metadata'
    | 'cell_ids',
    Sql
  >
>

/**
 * Inserts rows by SQL, in one transaction and without numbers, as mutations leave them. A column is an expression
 * over `i`, which counts from 1. Other columns are null, or those of a success of the type `planted`.
 */
export async function auditRows(
  { service }: Pick<TestService, 'service'>,
  count: number,
  columns: Columns = {},
): Promise<void> {
  const all: Columns = {
    event_type: sql`'planted'`,
    outcome: sql`'success'`,
    metadata: sql`jsonb_build_object('n', i)`,
    ...columns,
  }
  const names = Object.keys(all).map((name) => sql.raw(name))
  await service.app.db.run(sql`
    insert into audit_inbox (${sql.join(names, ', ')})
    select ${sql.join(Object.values(all), ', ')} from generate_series(1, ${count}::int) i`)
}

/** Deletes all rows, including those that wait for their number. */
export const clearAudit = ({ service }: Pick<TestService, 'service'>): Promise<number> =>
  service.app.db.run(sql`with waiting as (delete from audit_inbox) delete from audit_log`)

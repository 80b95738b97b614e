import type pg from 'pg'

/** One account with a third of all rows, one with few and old rows, and thousands in between. */
export const busy = '00000000-0000-4000-8000-0000000000b0'
export const quiet = '00000000-0000-4000-8000-0000000000c0'
export const quietType = 'account_purge'

const types = ['login', 'logout', 'cell_update', 'cell_create', 'cell_field_set', 'token_create']

/**
 * Fills an empty audit log with numbered rows, in so many partitions: a third by or on one account, event types of very different frequency,
 * one row in fifty a refusal. It rebuilds the indexes afterwards, since inserting into them takes minutes.
 */
export async function fillAuditLog(client: pg.Client, rows: number, partitions = 1): Promise<void> {
  await client.query('drop table audit_log_0, audit_cell_0')
  const each = Math.ceil((rows + 1) / partitions)
  // As many again as retention keeps ready, and room for what the calls write.
  for (let nth = 0; nth < partitions + 2; nth++)
    await client.query('select audit_partition($1::bigint, $2::bigint)', [nth * each, each])

  const { rows: indexes } = await client.query<{ indexname: string; indexdef: string }>(`
    select indexname, indexdef from pg_indexes where tablename = 'audit_log' and indexname <> 'audit_log_pkey'`)
  for (const { indexname } of indexes) await client.query(`drop index ${indexname}`)
  await client.query('select setseed(0.5)')
  await client.query(
    `insert into audit_log (seq, event_type, outcome, account_id, target_account_id, ip, created_at, metadata)
     select i,
       case when i <= 40 then '${quietType}'
         when i % 100 = 0 then case when i % 200 = 0 then 'role_grant_create' else 'role_grant_revoke' end
         else (array[${types.map((type) => `'${type}'`).join(', ')}])[floor(6 * power(random(), 3))::int + 1] end,
       case when i % 50 = 0 then 'failure' else 'success' end,
       case when i <= 60 then $2::uuid when i % 3 = 0 then $1::uuid else ${someone} end,
       case when i % 4 = 0 then $1::uuid when i % 4 = 1 then ${someone} end,
       '192.0.2.1', now() - ($3::bigint - i) * interval '1 second',
       jsonb_build_object('session_id', md5(i::text), 'credential_type', 'session')
     from generate_series(1, $3::bigint) i`,
    [busy, quiet, rows],
  )
  for (const { indexdef } of indexes) await client.query(indexdef.replace(' ON ONLY ', ' ON '))
  await client.query('update audit_position set seq = $1', [rows])
  await client.query('vacuum analyze audit_log')
}

const someone = `('00000000-0000-4000-8000-' || lpad(to_hex(floor(5000 * random())::int), 12, '0'))::uuid`

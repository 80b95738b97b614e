-- cellkeep: kind=backfill needs=0.1.0
-- Rows that were written to the log itself get their numbers.
select case when numbered = $2::integer then coalesce($1::jsonb, '{}') end as cursor, numbered as rows
  from audit_number_left($2) numbered;

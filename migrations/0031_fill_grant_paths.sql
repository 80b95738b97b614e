-- cellkeep: kind=backfill needs=0.1.0
-- A change of the path locks the cell, so a share lock keeps it as it is until the copy is written.
with batch as materialized (
  select id, cell_id from cell_grant
  where id > coalesce(($1::jsonb ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000') order by id limit $2
), kept as materialized (
  select batch.id, c.path from batch join cell c on c.id = batch.cell_id where c.path is not null for share of c
), filled as (
  update cell_grant g set cell_path = kept.path from kept where g.id = kept.id and g.cell_path is distinct from kept.path
)
select case when count(*) > 0 then jsonb_build_object('id', (array_agg(id order by id desc))[1]) end as cursor,
  count(*)::integer as rows
from batch;

-- cellkeep: kind=expand needs=0.1.0
-- What an account stores in cells: all cells that its actors own, including deleted ones until they are purged.

-- The usage of an account is the sum of its rows. Far from the limit each process updates its own row, so that
-- writers don't wait for each other; near the limit all update row 0, one at a time.
create table if not exists cell_usage (
  account_id uuid not null references account (id) on delete cascade,
  shard integer not null,
  cells bigint not null,
  bytes bigint not null,
  primary key (account_id, shard),
  constraint cell_usage_shard check (shard >= 0)
);

insert into cell_usage (account_id, shard, cells, bytes)
select actor.account_id, 0, count(*), sum(cell.data_bytes)
from cell join actor on actor.id = cell.created_by
group by actor.account_id
on conflict (account_id, shard) do nothing;

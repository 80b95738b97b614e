-- What an account stores in cells: those that its actors own, deleted ones too until they are removed for good.

-- The sum over the rows of an account counts. Writers far from its limit each take a row by their process, so that
-- they do not wait for each other; those near it take row 0, one at a time.
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

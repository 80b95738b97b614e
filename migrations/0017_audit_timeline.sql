-- cellkeep: kind=expand needs=0.1.0
-- Where a fail-over lost the newest rows of the log, their numbers are not given to other rows.

-- The timeline of the server, which every promotion and point-in-time recovery raises; null if it may not be read.
create or replace function server_timeline() returns text
language plpgsql
as $$
begin
  return left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
exception when others then
  return null;
end
$$;

-- On which timeline the highest number was given.
alter table audit_position add column if not exists timeline text collate "C";
update audit_position set timeline = server_timeline();

-- As before, and on a new timeline it leaves out more numbers than a lost branch can have given, so that followers who
-- read that branch miss nothing of this one.
create or replace function audit_number(most integer default 10000) returns integer
language plpgsql
as $$
declare
  last bigint;
  known text;
  present text;
  ids uuid[];
begin
  -- One session numbers at a time. Each statement below starts after the lock is held and so, at READ
  -- COMMITTED, sees what earlier sessions committed. Under a longer-lived snapshot it would not.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'audit_number() must run at READ COMMITTED' using errcode = 'invalid_transaction_state';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('cellkeep audit_number', 0));

  ids := array(select id from audit_log where seq is null order by written limit most);
  if cardinality(ids) = 0 then
    return 0;
  end if;
  select seq, timeline into strict last, known from audit_position;
  present := server_timeline();
  if present <> known then
    last := last + 1048576;
  end if;
  with numbered as (
    update audit_log
       set seq = last + nth
      from unnest(ids) with ordinality as batch (row_id, nth)
     where id = row_id
    returning seq, cell_ids
  )
  insert into audit_cell (cell_id, seq)
  select distinct cell_id, seq from numbered cross join unnest(cell_ids) cell_id;
  update audit_position set seq = last + cardinality(ids), timeline = coalesce(present, known);
  return cardinality(ids);
end
$$;

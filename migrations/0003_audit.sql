-- cellkeep: kind=expand needs=0.1.0
-- The audit log, its order and the cell timeline.
--
-- A mutation writes its rows without a number, through audit_write(). A reader first numbers the committed
-- rows, through audit_number(). So numbers rise in the order in which rows became visible, no open
-- transaction holds up a reader, and writers never wait for each other.
-- Every read must say `seq is not null`: rows without a number must not be shown. The indexes for reading
-- leave them out, so that a row enters each of them only once, when it is numbered.

create table if not exists audit_log (
  id uuid primary key default gen_random_uuid(),
  seq bigint,
  -- Order of writing within one transaction; meaningless across transactions.
  written bigint not null generated always as identity,
  event_type text collate "C" not null,
  outcome text collate "C" not null,
  actor_id uuid,
  account_id uuid,
  target_actor_id uuid,
  target_account_id uuid,
  ip text collate "C",
  created_at timestamptz(3) not null default clock_timestamp(),
  metadata jsonb,
  -- Cells in whose timeline the row appears; copied to audit_cell when the row is numbered.
  cell_ids uuid[],
  constraint audit_log_outcome check (outcome in ('success', 'failure')),
  constraint audit_log_metadata_object check (jsonb_typeof(metadata) = 'object')
)
-- Numbering leaves one dead row per event. With the default, a fifth of the table, the probe for rows
-- without a number could scan millions of dead index entries before the next vacuum.
with (autovacuum_vacuum_scale_factor = 0.03);
create unique index if not exists audit_log_seq on audit_log (seq) where seq is not null;
create index if not exists audit_log_event on audit_log (event_type, seq) where seq is not null;
create index if not exists audit_log_account on audit_log (account_id, seq) where seq is not null;
create index if not exists audit_log_target on audit_log (target_account_id, seq) where seq is not null;
-- Failures are rare; without their own indexes a search for them would scan all successes.
create index if not exists audit_log_failure on audit_log (seq) where outcome = 'failure' and seq is not null;
create index if not exists audit_log_failure_event on audit_log (event_type, seq)
  where outcome = 'failure' and seq is not null;
create index if not exists audit_log_created on audit_log (created_at) where seq is not null;
create index if not exists audit_log_unnumbered on audit_log (written) where seq is null;

-- The timeline of a cell, without references. Rows are inserted when their audit row is numbered, never
-- updated, and deleted with the audit row (found through its cell_ids) or with the cell.
create table if not exists audit_cell (
  cell_id uuid not null,
  seq bigint not null,
  primary key (cell_id, seq)
);

-- The highest number assigned and the highest one removed by retention, which max(seq) cannot tell.
create table if not exists audit_position (
  id integer primary key default 1,
  seq bigint not null default 0,
  removed_seq bigint not null default 0,
  constraint audit_position_single check (id = 1)
);
insert into audit_position (id) values (1) on conflict do nothing;

-- The cell id under a top-level metadata key; null if the value is not a well-formed id, so that events of
-- consumers may use these keys for anything.
create or replace function audit_named_cell(metadata jsonb, key text) returns uuid
language sql immutable parallel safe
as $$
  select case
    when metadata ->> key ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
    then (metadata ->> key)::uuid
  end
$$;

-- Writes audit rows in the order of the array, and raises on the first bad one. An element is
--   {event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata, cell_ids}
-- where absent keys count as null. Its cells are the ids under six top-level metadata keys, plus cell_ids.
create or replace function audit_insert(entries json) returns void
language plpgsql
as $$
begin
  insert into audit_log (event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
                         metadata, cell_ids)
  select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata,
         -- One expression: a subquery would make the audit statement of every mutation noticeably slower.
         nullif(
           array_remove(
             array[
               audit_named_cell(metadata, 'cell_id'), audit_named_cell(metadata, 'source_id'),
               audit_named_cell(metadata, 'parent_id'), audit_named_cell(metadata, 'child_id'),
               audit_named_cell(metadata, 'target_id'), audit_named_cell(metadata, 'new_id')
             ] || cell_ids,
             null
           ),
           '{}'
         )
    from rows from (
           json_to_recordset(entries) as (
             event_type text, outcome text, actor_id uuid, account_id uuid, target_actor_id uuid,
             target_account_id uuid, ip text, metadata jsonb, cell_ids uuid[])
         ) with ordinality
   order by ordinality;
end
$$;

-- audit_insert() that never fails its caller. The exception block is a savepoint inside the statement, so it
-- can be sent together with COMMIT. Returns null if every row was written, else how many were lost and the
-- first cause, for log and metrics. The parameter is json, not jsonb, so that content refused by jsonb
-- (\u0000) fails in here and not in the caller's transaction. A time limit or cancel (57014) is not caught:
-- it ends the whole mutation, as it does elsewhere.
create or replace function audit_write(entries json) returns text
language plpgsql
as $$
declare
  entry json;
  lost integer := 0;
  cause text;
begin
  begin
    perform audit_insert(entries);
    return null;
  exception when others then
    -- One bad row must not lose the others: try again row by row.
    null;
  end;
  for entry in select value from json_array_elements(entries) loop
    begin
      perform audit_insert(json_build_array(entry));
    exception when others then
      lost := lost + 1;
      cause := coalesce(cause, sqlstate || ' ' || sqlerrm);
    end;
  end loop;
  return case
    when lost > 0 then format('%s of %s rows lost: %s', lost, json_array_length(entries), cause)
  end;
end
$$;

-- Numbers committed rows that have no number yet, at most `most` of them, and returns how many. Call it in
-- its own statement, outside a transaction, if the probe
--   select written from audit_log where seq is null order by written limit 1
-- finds a row (its `order by` keeps the planner on the partial index, whatever the statistics say), and
-- repeat while it returns `most`.
create or replace function audit_number(most integer default 10000) returns integer
language plpgsql
as $$
declare
  last bigint;
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
  select seq into strict last from audit_position;
  with numbered as (
    update audit_log
       set seq = last + nth
      from unnest(ids) with ordinality as batch (row_id, nth)
     where id = row_id
    returning seq, cell_ids
  )
  insert into audit_cell (cell_id, seq)
  select distinct cell_id, seq from numbered cross join unnest(cell_ids) cell_id;
  update audit_position set seq = last + cardinality(ids);
  return cardinality(ids);
end
$$;

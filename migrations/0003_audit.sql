-- The audit log, its order and the cell timeline.
--
-- A mutation writes its rows without a number, through audit_write(). Whoever is about to read first
-- numbers what has been committed, through audit_number(). Numbers therefore rise in the order in which
-- rows became visible, no open transaction holds a reader back, and writers never wait for each other.
-- Every read must say `seq is not null`: rows without a number are not to be shown, and the indexes for
-- reading leave them out, so that numbering a row adds it to each of them once.

create table if not exists audit_log (
  id uuid primary key default gen_random_uuid(),
  seq bigint,
  -- Order of writing inside one transaction; says nothing across transactions.
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
  -- Cells whose timeline the row belongs to; audit_cell gets them with the number.
  cell_ids uuid[],
  constraint audit_log_outcome check (outcome in ('success', 'failure')),
  constraint audit_log_metadata_object check (jsonb_typeof(metadata) = 'object')
)
-- Numbering leaves one dead row per event. At the default, a fifth of a large table, the probe for rows
-- without a number could walk millions of dead index entries before a vacuum comes.
with (autovacuum_vacuum_scale_factor = 0.03);
create unique index if not exists audit_log_seq on audit_log (seq) where seq is not null;
create index if not exists audit_log_event on audit_log (event_type, seq) where seq is not null;
create index if not exists audit_log_account on audit_log (account_id, seq) where seq is not null;
create index if not exists audit_log_target on audit_log (target_account_id, seq) where seq is not null;
-- Refusals are few; without indexes of their own they would be looked for among everything that went well.
create index if not exists audit_log_failure on audit_log (seq) where outcome = 'failure' and seq is not null;
create index if not exists audit_log_failure_event on audit_log (event_type, seq)
  where outcome = 'failure' and seq is not null;
create index if not exists audit_log_created on audit_log (created_at) where seq is not null;
create index if not exists audit_log_unnumbered on audit_log (written) where seq is null;

-- The timeline of a cell: no references, it survives what it names. Rows arrive with their number, are
-- never changed, and leave with the audit row (found through its cell_ids) or with the removed cell.
create table if not exists audit_cell (
  cell_id uuid not null,
  seq bigint not null,
  primary key (cell_id, seq)
);

-- The highest number given and the highest one removed by retention: max(seq) would forget both.
create table if not exists audit_position (
  id integer primary key default 1,
  seq bigint not null default 0,
  removed_seq bigint not null default 0,
  constraint audit_position_single check (id = 1)
);
insert into audit_position (id) values (1) on conflict do nothing;

-- The cell that a top-level metadata key names; null where it holds no well-formed id, so that events of
-- consumers may use these keys as they like.
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
-- with absent = null. Its cells are the ids under the six top-level metadata keys, and cell_ids besides.
create or replace function audit_insert(entries json) returns void
language plpgsql
as $$
begin
  insert into audit_log (event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
                         metadata, cell_ids)
  select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata,
         -- One expression and no subquery: a fifth of the time of every mutation's audit statement.
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

-- audit_insert() that never fails its caller: the exception block is a savepoint inside the statement, so
-- it travels in one pipeline with COMMIT. Null when every row was written, else how many were lost and the
-- first cause, for log and metric. The parameter is json and not jsonb, so that content jsonb refuses
-- (\u0000) fails in here instead of in the caller's transaction. A time limit or cancel (57014) is no
-- failing insert: it ends the whole mutation, as it does elsewhere.
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
    -- One bad row must not take the others along: once more, each on its own.
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

-- Numbers committed rows that have no number yet, at most `most` of them, and answers how many. Call it in
-- a statement of its own, outside a transaction, when the probe
--   select written from audit_log where seq is null order by written limit 1
-- finds a row (its `order by` keeps the planner on the partial index, whatever the statistics say), and
-- again while it answers `most`.
create or replace function audit_number(most integer default 10000) returns integer
language plpgsql
as $$
declare
  last bigint;
  ids uuid[];
begin
  -- One numberer at a time. Each statement below begins after the lock is held and so, at READ COMMITTED,
  -- sees what every earlier numberer committed. Under a longer-lived snapshot it would not.
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

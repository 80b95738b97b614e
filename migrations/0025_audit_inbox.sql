-- cellkeep: kind=expand needs=0.1.0
-- Rows of the log are written to an inbox and move to the log with their number, so that the log is only inserted into
-- and can be divided.

create table if not exists audit_inbox (
  -- Order of writing within one transaction; meaningless across transactions.
  written bigint primary key generated always as identity,
  id uuid not null default gen_random_uuid(),
  event_type text collate "C" not null,
  outcome text collate "C" not null,
  actor_id uuid,
  account_id uuid,
  target_actor_id uuid,
  target_account_id uuid,
  ip text collate "C",
  created_at timestamptz(3) not null default clock_timestamp(),
  metadata jsonb,
  cell_ids uuid[],
  constraint audit_inbox_outcome check (outcome in ('success', 'failure')),
  constraint audit_inbox_metadata_object check (jsonb_typeof(metadata) = 'object')
)
-- Every row is deleted soon. The probe for waiting rows passes those that no vacuum has removed.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- The log takes what the inbox has given out. Rows that were written to the log itself still get their number there.
do $$
begin
  if to_regprocedure('audit_number_left(integer)') is null then
    perform setval(pg_get_serial_sequence('audit_inbox', 'written'),
                   coalesce(pg_sequence_last_value(pg_get_serial_sequence('audit_log', 'written')), 0) + 1, false);
    alter table audit_log alter written drop identity, alter written drop not null,
      add constraint audit_log_numbered check (seq is not null) not valid;
    alter function audit_number(integer) rename to audit_number_left;
  end if;
end
$$;

-- The size of the newest partition: a list reads about so many numbers at first.
alter table audit_position add column if not exists partition_rows bigint not null default 10000000;

-- All rows, those that wait for their number too.
create or replace function audit_entries() returns table (
  id uuid, seq bigint, written bigint, event_type text, outcome text, actor_id uuid, account_id uuid,
  target_actor_id uuid, target_account_id uuid, ip text, created_at timestamptz, metadata jsonb, cell_ids uuid[])
language sql stable
as $$
  select id, seq, written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
         created_at, metadata, cell_ids
    from audit_log
  union all
  select id, null, written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
         created_at, metadata, cell_ids
    from audit_inbox
$$;

-- As in 0003, into the inbox.
create or replace function audit_insert(entries json) returns void
language plpgsql
as $$
begin
  insert into audit_inbox (event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
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

-- The partitions of the log by their numbers, the upper one exclusive; none while the log is one table.
create or replace function audit_partitions() returns table (lower bigint, upper bigint)
language sql stable
as $$
  select substring(bound from 'FROM \(''(\d+)')::bigint, substring(bound from 'TO \(''(\d+)')::bigint
    from pg_inherits join pg_class c on c.oid = inhrelid
      cross join lateral pg_get_expr(c.relpartbound, c.oid) bound
   where inhparent = to_regclass('audit_log') and not inhdetachpending
$$;

-- Makes the partitions of the log and of the timelines that hold the number `at`, unless they are there, and returns
-- the first number after them. They begin at a multiple of `size`, by default that of the newest ones, and hold as many
-- numbers, except those that their neighbours hold.
create or replace function audit_partition(at bigint, size bigint default null) returns bigint
language plpgsql
set lock_timeout = '2s'
as $$
declare
  first bigint;
  above bigint;
  part text;
begin
  for attempt in 1..2 loop
    select upper into above from audit_partitions() where at >= lower and at < upper;
    if found then
      return above;
    end if;
    -- One session makes partitions at a time. As in audit_number(), later statements see what earlier sessions made.
    lock table only audit_log, only audit_cell in share update exclusive mode;
  end loop;
  size := coalesce(size, (select partition_rows from audit_position), 10000000);
  first := greatest(at / size * size, (select max(upper) from audit_partitions() where upper <= at));
  above := least(at / size * size + size, (select min(lower) from audit_partitions() where lower > at));
  foreach part in array array['audit_log', 'audit_cell'] loop
    execute format('create table %1$s_%2$s (like %1$s including all) with (autovacuum_vacuum_insert_scale_factor = 0.05)',
                   part, first);
    execute format('alter table %1$s attach partition %1$s_%2$s for values from (%2$s) to (%3$s)', part, first, above);
  end loop;
  update audit_position set partition_rows = size where partition_rows <> size;
  return above;
end
$$;

-- Whether a committed row waits for its number. The index remembers what is dead, but the planner would leave it while
-- the inbox is small.
create or replace function audit_waiting() returns boolean
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return exists (select from audit_inbox where written > 0);
end
$$;

-- Moves committed rows that wait for their number into the log, at most `most` of them, and returns how many: none also
-- if no partition holds their numbers and none can be made. Call it in its own statement, outside a transaction, while
-- audit_waiting() is true.
create or replace function audit_number(most integer default 10000) returns integer
language plpgsql
as $$
declare
  last bigint;
  known text;
  present text;
  next bigint;
  numbered integer;
begin
  -- One session numbers at a time. Each statement below starts after the lock is held and so, at READ
  -- COMMITTED, sees what earlier sessions committed. Under a longer-lived snapshot it would not.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'audit_number() must run at READ COMMITTED' using errcode = 'invalid_transaction_state';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('cellkeep audit_number', 0));

  select seq, timeline into strict last, known from audit_position;
  present := server_timeline();
  if present <> known then
    last := last + 1048576;
  end if;
  for attempt in 1..2 loop
    begin
      with taken as (
        delete from audit_inbox
         where written = any (array(select written from audit_inbox order by written limit most))
        returning *
      ), moved as (
        insert into audit_log (id, seq, written, event_type, outcome, actor_id, account_id, target_actor_id,
                               target_account_id, ip, created_at, metadata, cell_ids)
        select id, last + row_number() over (order by written), written, event_type, outcome, actor_id, account_id,
               target_actor_id, target_account_id, ip, created_at, metadata, cell_ids
          from taken
        returning seq, cell_ids
      ), placed as (
        insert into audit_cell (cell_id, seq)
        select distinct cell_id, seq from moved cross join unnest(cell_ids) cell_id
      )
      select count(*) into numbered from moved;
      exit;
    exception when check_violation then
      -- No partition holds the numbers. Rows wait where none can be made.
      numbered := 0;
    end;
    exit when attempt = 2;
    begin
      next := last + 1;
      while next <= last + (select count(*) from (select from audit_inbox limit most) waiting) loop
        next := audit_partition(next);
      end loop;
    exception when query_canceled or others then
      exit;
    end;
  end loop;
  if numbered > 0 then
    update audit_position set seq = last + numbered, timeline = coalesce(present, known);
  end if;
  return numbered;
end
$$;

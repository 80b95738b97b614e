-- cellkeep: kind=index needs=0.1.0
-- The log and the timelines of cells are divided by number. What they hold becomes the first partition, where it is.

-- What these constraints prove is not read again under the locks of the division. Their bound is far enough from the
-- newest row that it is not reached meanwhile.
do $$
declare
  bound constant bigint := (select (seq / 10000000 + 2) * 10000000 from audit_position);
  part text;
begin
  if exists (select from audit_partitions()) then
    return;
  end if;
  foreach part in array array['audit_log', 'audit_cell'] loop
    execute format('alter table %1$s drop constraint if exists %1$s_bounds,'
                   ' add constraint %1$s_bounds check (seq >= 0 and seq < %2$s) not valid', part, bound);
  end loop;
end
$$;

do $$
begin
  if exists (select from audit_partitions()) then
    return;
  end if;
  alter table audit_log validate constraint audit_log_numbered;
  alter table audit_log validate constraint audit_log_bounds;
  alter table audit_cell validate constraint audit_cell_bounds;
end
$$;

do $$
declare
  bound bigint;
  part text;
begin
  if exists (select from audit_partitions()) then
    return;
  end if;
  lock table audit_log, audit_cell in access exclusive mode;
  select substring(pg_get_constraintdef(oid) from '< ''?(\d+)')::bigint into strict bound
    from pg_constraint where conname = 'audit_log_bounds' and conrelid = 'audit_log'::regclass;
  alter table audit_log alter seq set not null, drop constraint audit_log_pkey;
  alter table audit_log add constraint audit_log_0_pkey primary key using index audit_log_0_pkey;
  drop index audit_log_seq, audit_log_unnumbered, audit_log_event, audit_log_account, audit_log_target,
    audit_log_failure, audit_log_failure_event, audit_log_created, audit_log_actor, audit_log_target_actor;
  -- Its rows come and never change.
  alter table audit_log reset (autovacuum_vacuum_scale_factor);
  alter index audit_cell_pkey rename to audit_cell_0_pkey;

  create table audit_log_divided (
    id uuid not null default gen_random_uuid(),
    seq bigint not null,
    -- As in the inbox; rows of imports may lack it.
    written bigint,
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
    constraint audit_log_pkey primary key (seq),
    constraint audit_log_outcome check (outcome in ('success', 'failure')),
    constraint audit_log_metadata_object check (jsonb_typeof(metadata) = 'object')
  ) partition by range (seq);
  create index audit_log_event on audit_log_divided (event_type, seq);
  create index audit_log_account on audit_log_divided (account_id, seq);
  create index audit_log_target on audit_log_divided (target_account_id, seq);
  -- Failures are rare; without their own indexes a search for them would scan all successes.
  create index audit_log_failure on audit_log_divided (seq) where outcome = 'failure';
  create index audit_log_failure_event on audit_log_divided (event_type, seq) where outcome = 'failure';
  create index audit_log_created on audit_log_divided (created_at);
  -- Most rows have no target.
  create index audit_log_actor on audit_log_divided (actor_id, seq) where actor_id is not null;
  create index audit_log_target_actor on audit_log_divided (target_actor_id, seq) where target_actor_id is not null;
  create table audit_cell_divided (
    cell_id uuid not null,
    seq bigint not null,
    constraint audit_cell_pkey primary key (cell_id, seq)
  ) partition by range (seq);

  foreach part in array array['audit_log', 'audit_cell'] loop
    execute format('alter table %1$s rename to %1$s_0', part);
    execute format('alter table %1$s_divided rename to %1$s', part);
    execute format('alter table %1$s attach partition %1$s_0 for values from (0) to (%2$s)', part, bound);
  end loop;
  alter table audit_log_0 drop constraint audit_log_numbered, drop constraint audit_log_bounds;
  alter table audit_cell_0 drop constraint audit_cell_bounds;
end
$$;

drop function if exists audit_number_left(integer);

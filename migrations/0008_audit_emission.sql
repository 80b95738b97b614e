-- Emission of audit rows that can neither hold up nor fail a mutation, and rows whose ids belong together.
-- This file and 0003_audit.sql may be run again by hand, in this order, where a function was lost.

-- How many rows could not be written of late, for `cellkeep doctor`; the service's log says which. No row: none.
create table if not exists audit_loss (
  id integer primary key default 1,
  lost_rows bigint not null,
  since timestamptz(3) not null default clock_timestamp(),
  last_at timestamptz(3) not null default clock_timestamp(),
  cause text collate "C" not null,
  constraint audit_loss_single check (id = 1)
);

-- audit_insert() that never fails its caller: the exception block is a savepoint inside the statement, so
-- it travels in one pipeline with COMMIT. Null when every row was written, else a JSON object as text:
--   {"lost": [places in the array, from 0], "cause": "SQLSTATE and message of the first failure"}
-- Whoever locks the table is waited for a moment only, once per call; a cancel or time limit that strikes in
-- here costs the rows, not the mutation. The parameter is json and not jsonb, so that content jsonb refuses
-- (\u0000) fails in here instead of in the caller's transaction.
create or replace function audit_write(entries json) returns text
language plpgsql
set lock_timeout = '250ms'
as $$
declare
  entry json;
  place integer := -1;
  lost integer[] := '{}';
  cause text;
  -- Waiting again, for each of the rows, would add up.
  is_over boolean := false;
begin
  begin
    perform audit_insert(entries);
    return null;
  exception
    when lock_not_available or query_canceled then
      is_over := true;
      cause := sqlstate || ' ' || sqlerrm;
    when assert_failure or others then
      -- One bad row must not take the others along: once more, each on its own.
      null;
  end;
  for entry in select value from json_array_elements(entries) loop
    place := place + 1;
    if is_over then
      lost := lost || place;
      continue;
    end if;
    begin
      perform audit_insert(json_build_array(entry));
    exception when query_canceled or assert_failure or others then
      is_over := sqlstate in ('55P03', '57014');
      lost := lost || place;
      -- Messages of class 22 quote the value that was refused.
      cause := coalesce(cause, sqlstate || case when sqlstate like '22%' then '' else ' ' || sqlerrm end);
    end;
  end loop;
  return case when lost <> '{}' then json_build_object('lost', lost, 'cause', cause)::text end;
end
$$;

-- audit_write() for rows whose pairs of ids come from somewhere else than a caller who was looked up: where an
-- actor is stored, the account of the pair is the actor's. The answer tells of accounts that were another:
--   {"mended": [places in the array, from 0]}, beside what audit_write() answers.
-- Ids of actors that are not stored stay as they are: rows outlive what they name.
create or replace function audit_write_paired(entries json) returns text
language plpgsql
set lock_timeout = '250ms'
as $$
declare
  paired json;
  mended integer[];
  answer text;
begin
  begin
    select json_agg(
             case when doer.id is null and target.id is null then value
                  else (value::jsonb || jsonb_strip_nulls(jsonb_build_object(
                         'account_id', doer.account_id, 'target_account_id', target.account_id)))::json
             end order by place),
           array_agg((place - 1)::integer order by place) filter (
             where lower(value ->> 'account_id') <> doer.account_id::text
                or lower(value ->> 'target_account_id') <> target.account_id::text)
      into paired, mended
      from json_array_elements(entries) with ordinality as entry (value, place)
        left join actor doer on doer.id = audit_named_cell(value::jsonb, 'actor_id')
        left join actor target on target.id = audit_named_cell(value::jsonb, 'target_actor_id');
  exception when query_canceled or assert_failure or others then
    paired := entries;
    mended := null;
  end;
  answer := audit_write(coalesce(paired, entries));
  if mended is null then
    return answer;
  end if;
  return (coalesce(answer::jsonb, '{}') || jsonb_build_object('mended', mended))::text;
end
$$;

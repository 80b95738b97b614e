-- cellkeep: kind=expand needs=0.1.0
-- Writing audit rows can neither delay nor fail a mutation, and pairs of ids in a row match.
-- To restore a lost function, run 0003_audit.sql and then this file again by hand.

-- How many rows could not be written lately, for `cellkeep doctor`; the service's log says which. No row: none.
create table if not exists audit_loss (
  id integer primary key default 1,
  lost_rows bigint not null,
  since timestamptz(3) not null default clock_timestamp(),
  last_at timestamptz(3) not null default clock_timestamp(),
  cause text collate "C" not null,
  constraint audit_loss_single check (id = 1)
);

-- audit_insert() that never fails its caller. The exception block is a savepoint inside the statement, so it
-- can be sent together with COMMIT. Returns null if every row was written, else a JSON object as text:
--   {"lost": [places in the array, from 0], "cause": "SQLSTATE and message of the first failure"}
-- It waits only briefly for a lock on the table, and once per call; a cancel or time limit in here loses the
-- rows, not the mutation. The parameter is json, not jsonb, so that content refused by jsonb (\u0000) fails
-- in here and not in the caller's transaction.
create or replace function audit_write(entries json) returns text
language plpgsql
set lock_timeout = '250ms'
as $$
declare
  entry json;
  place integer := -1;
  lost integer[] := '{}';
  cause text;
  -- True: don't wait again for each of the remaining rows.
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
      -- One bad row must not lose the others: try again row by row.
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
      -- Messages of class 22 quote the refused value.
      cause := coalesce(cause, sqlstate || case when sqlstate like '22%' then '' else ' ' || sqlerrm end);
    end;
  end loop;
  return case when lost <> '{}' then json_build_object('lost', lost, 'cause', cause)::text end;
end
$$;

-- audit_write() for rows whose pairs of actor and account ids do not come from an authenticated caller: if the
-- actor exists, its account replaces that of the pair. The result lists the rows with another account:
--   {"mended": [places in the array, from 0]}, in addition to the result of audit_write().
-- Ids of actors that don't exist are kept: rows outlive the actors they name.
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

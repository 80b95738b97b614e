-- cellkeep: kind=expand needs=0.1.0
-- audit_write_paired() as before, but each actor is read by its id. Joined, a table of some thousand actors was read
-- whole for each row, since PostgreSQL expects a hundred rows in any JSON array.
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
        left join lateral (
          select id, account_id from actor where id = audit_named_cell(value::jsonb, 'actor_id') offset 0
        ) doer on true
        left join lateral (
          select id, account_id from actor where id = audit_named_cell(value::jsonb, 'target_actor_id') offset 0
        ) target on true;
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

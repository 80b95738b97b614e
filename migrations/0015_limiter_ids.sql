-- cellkeep: kind=expand needs=0.1.0
-- Random ids for limiter charges. The sequence behind an identity of an unlogged table is unlogged too: on a standby
-- that was promoted at the wrong moment it is an empty page, and every charge failed for good.
do $$ begin
  if (select data_type from information_schema.columns
      where table_name = 'limiter_charge' and column_name = 'id' and table_schema = current_schema()) = 'bigint' then
    alter table limiter_charge drop column id;
    alter table limiter_charge add column id uuid not null default gen_random_uuid() primary key;
  end if;
end $$;

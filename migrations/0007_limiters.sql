-- cellkeep: kind=expand needs=0.1.0
-- Limiters whose charges all nodes share (CELLKEEP_LIMIT_STORE=postgres).

-- Charges, and the slots held by running attempts. Unlogged: nothing waits for the disk, and a crash of the
-- database loses no more than the memory store loses at a restart.
create unlogged table if not exists limiter_charge (
  id bigint generated always as identity primary key,
  limiter text collate "C" not null,
  key text collate "C" not null,
  -- When it was charged or taken; for a sub-window, the time of its first charge.
  at timestamptz(3) not null,
  charges integer not null default 1,
  -- Set while an attempt holds the row as its slot.
  slot uuid,
  expires_at timestamptz(3) not null,
  constraint limiter_charge_counts check (charges > 0)
);
create index if not exists limiter_charge_bucket on limiter_charge (limiter, key, expires_at);
create index if not exists limiter_charge_expires on limiter_charge (expires_at);

-- Adds one charge, to the current sub-window if there is one; it lasts for `grain`.
create or replace function limiter_add(
  of_limiter text, of_key text, span interval, grain interval, moment timestamptz
) returns void
language plpgsql
as $$
begin
  update limiter_charge set charges = charges + 1
  where id = (
    select id from limiter_charge
    where limiter = of_limiter and key = of_key and slot is null and expires_at > moment
      and at >= moment - grain and grain > interval '0'
    order by at desc limit 1);
  if not found then
    insert into limiter_charge (limiter, key, at, expires_at)
    values (of_limiter, of_key, moment, moment + span + grain);
  end if;
end $$;

-- Tests a bucket and takes a slot, or charges the bucket if `as_slot` is null. Returns null if admitted, else
-- the whole seconds until an attempt would be. A slot older than `lease` is taken for that of a dead process
-- and counts as a charge at the time when it was taken. Only tests pass `moment`.
create or replace function limiter_take(
  of_limiter text, of_key text, most integer, span interval, grain interval, lease interval, as_slot uuid,
  moment timestamptz default null
) returns integer
language plpgsql
as $$
declare
  charged bigint;
  held bigint;
begin
  -- Statements after the lock see what its previous holder committed.
  perform pg_advisory_xact_lock(hashtext(of_limiter), hashtext(of_key));
  moment := coalesce(moment, date_trunc('milliseconds', clock_timestamp()));
  select coalesce(sum(charges) filter (where slot is null or at + lease <= moment), 0),
      count(*) filter (where slot is not null and at + lease > moment)
    into charged, held
    from limiter_charge where limiter = of_limiter and key = of_key and expires_at > moment;
  if charged + held < most then
    if as_slot is null then
      perform limiter_add(of_limiter, of_key, span, grain, moment);
    else
      insert into limiter_charge (limiter, key, at, slot, expires_at)
      values (of_limiter, of_key, moment, as_slot, moment + greatest(span, lease));
    end if;
    return null;
  end if;
  if charged < most then
    return 1;
  end if;
  -- The time until enough charges have expired.
  return (
    select greatest(1, ceil(extract(epoch from min(expires_at) - moment)))::integer
    from (
      select expires_at, charged - sum(charges) over (order by expires_at, id) as remaining
      from limiter_charge
      where limiter = of_limiter and key = of_key and expires_at > moment
        and (slot is null or at + lease <= moment)
    ) leaving
    where remaining + held < most);
end $$;

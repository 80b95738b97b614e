-- cellkeep: kind=expand needs=0.1.0
-- Addresses from which accounts signed in lately, and limiters whose attempts wait for the outcome of others.

-- One row per account and address (for IPv6 its /64). Failures elsewhere don't lock out a login from here.
-- At most 16 per account: the login that adds one removes the oldest. Cleanup removes rows older than 90 days.
create table if not exists account_address (
  account_id uuid not null references account (id) on delete cascade,
  address text collate "C" not null,
  last_at timestamptz(3) not null default now(),
  primary key (account_id, address)
);
create index if not exists account_address_last on account_address (last_at);

-- As in 0007, but returns 0 if only slots of running attempts fill the bucket: worth waiting for their outcomes.
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
    return 0;
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

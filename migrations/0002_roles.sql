-- cellkeep: kind=expand needs=0.1.0
-- Role grants and the offers they come from. Roles and scope kinds are declared by the consumer, so
-- no constraint lists them. Scope ids belong to the consumer too.

create table if not exists role_grant_offer (
  offer_id uuid primary key default gen_random_uuid(),
  -- No reference: an accepted offer outlives the purge of its grantor.
  from_actor_id uuid not null,
  from_account_id uuid not null,
  to_account_id uuid not null references account (id) on delete cascade,
  to_actor_id uuid references actor (id) on delete cascade,
  role text collate "C" not null,
  scope_kind text collate "C",
  scope_id uuid,
  message text collate "C",
  grant_expires_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  accepted_at timestamptz(3),
  declined_at timestamptz(3),
  retracted_at timestamptz(3),
  superseded_at timestamptz(3),
  expired_at timestamptz(3),
  decline_reason text collate "C",
  resulting_role_grant_id uuid,
  constraint role_grant_offer_scope_paired check ((scope_kind is null) = (scope_id is null)),
  constraint role_grant_offer_one_end
    check (num_nonnulls(accepted_at, declined_at, retracted_at, superseded_at, expired_at) <= 1),
  constraint role_grant_offer_reason_declined check (decline_reason is null or declined_at is not null),
  constraint role_grant_offer_result_accepted
    check (resulting_role_grant_id is null or accepted_at is not null)
);

create table if not exists role_grant (
  id uuid primary key default gen_random_uuid(),
  actor_id uuid not null references actor (id) on delete cascade,
  role text collate "C" not null,
  scope_kind text collate "C",
  scope_id uuid,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  revoked_by uuid,
  revoked_reason text collate "C",
  -- Set on an expired row when a new one replaces it, so that the "live" indexes don't depend on the clock.
  closed_at timestamptz(3),
  granted_by uuid,
  source_offer_id uuid references role_grant_offer (offer_id) on delete set null,
  constraint role_grant_scope_paired check ((scope_kind is null) = (scope_id is null)),
  constraint role_grant_reason_revoked check (revoked_reason is null or revoked_at is not null)
);

-- The two tables reference each other, so this reference is added after the second one exists.
do $$
begin
  if not exists (
    select from pg_constraint
     where conrelid = 'role_grant_offer'::regclass and conname = 'role_grant_offer_result_fkey'
  ) then
    alter table role_grant_offer add constraint role_grant_offer_result_fkey
      foreign key (resulting_role_grant_id) references role_grant (id) on delete set null;
  end if;
end
$$;

-- One live row per tuple; also finds the live grants of an actor.
create unique index if not exists role_grant_live on role_grant (actor_id, role, scope_kind, scope_id)
  nulls not distinct where revoked_at is null and closed_at is null;
create index if not exists role_grant_live_scope on role_grant (scope_kind, scope_id)
  where revoked_at is null and closed_at is null and scope_id is not null;
create index if not exists role_grant_live_global on role_grant (role)
  where revoked_at is null and closed_at is null and scope_id is null;
-- These include ended grants: the purge of an actor deletes them, the purge of an offer clears their reference.
create index if not exists role_grant_actor on role_grant (actor_id);
create index if not exists role_grant_source on role_grant (source_offer_id)
  where source_offer_id is not null;

create unique index if not exists role_grant_offer_pending on role_grant_offer
  (to_account_id, to_actor_id, role, scope_kind, scope_id, from_actor_id) nulls not distinct
  where accepted_at is null and declined_at is null and retracted_at is null
    and superseded_at is null and expired_at is null;
create index if not exists role_grant_offer_pending_inbox on role_grant_offer
  (to_account_id, expires_at, offer_id)
  where accepted_at is null and declined_at is null and retracted_at is null
    and superseded_at is null and expired_at is null;
create index if not exists role_grant_offer_pending_expires on role_grant_offer (expires_at)
  where accepted_at is null and declined_at is null and retracted_at is null
    and superseded_at is null and expired_at is null;
create index if not exists role_grant_offer_pending_from on role_grant_offer (from_actor_id)
  where accepted_at is null and declined_at is null and retracted_at is null
    and superseded_at is null and expired_at is null;
create index if not exists role_grant_offer_pending_scope on role_grant_offer (scope_kind, scope_id)
  where accepted_at is null and declined_at is null and retracted_at is null
    and superseded_at is null and expired_at is null;
create index if not exists role_grant_offer_to on role_grant_offer (to_account_id, created_at, offer_id);
create index if not exists role_grant_offer_from on role_grant_offer (from_account_id, created_at, offer_id);
create index if not exists role_grant_offer_to_actor on role_grant_offer (to_actor_id)
  where to_actor_id is not null;
create index if not exists role_grant_offer_result on role_grant_offer (resulting_role_grant_id)
  where resulting_role_grant_id is not null;

-- Scopes that the consumer has destroyed: no new grants or offers are made at them.
create table if not exists role_scope_destroyed (
  scope_kind text collate "C" not null,
  scope_id uuid not null,
  destroyed_at timestamptz(3) not null default now(),
  primary key (scope_kind, scope_id)
);

-- cellkeep: kind=index needs=0.1.0
-- Each index of open offers holds only for who names its key: `<>` the nil id, a role, a time, a scope. From statistics
-- of before many offers PostgreSQL expects one open offer. With the same condition for all indexes it would then read any
-- of them whole, and look for the key in the rows.
create unique index concurrently if not exists role_grant_offer_open on role_grant_offer
  (to_account_id, to_actor_id, role, scope_kind, scope_id, from_actor_id) nulls not distinct
  where accepted_at is null and declined_at is null and retracted_at is null and superseded_at is null
    and expired_at is null and role <> '';
drop index concurrently if exists role_grant_offer_pending;
create index concurrently if not exists role_grant_offer_open_to on role_grant_offer (to_account_id, expires_at, offer_id)
  where accepted_at is null and declined_at is null and retracted_at is null and superseded_at is null
    and expired_at is null and to_account_id <> '00000000-0000-0000-0000-000000000000';
drop index concurrently if exists role_grant_offer_pending_inbox;
create index concurrently if not exists role_grant_offer_open_from on role_grant_offer (from_actor_id)
  where accepted_at is null and declined_at is null and retracted_at is null and superseded_at is null
    and expired_at is null and from_actor_id <> '00000000-0000-0000-0000-000000000000';
drop index concurrently if exists role_grant_offer_pending_from;
create index concurrently if not exists role_grant_offer_open_expires on role_grant_offer (expires_at)
  where accepted_at is null and declined_at is null and retracted_at is null and superseded_at is null
    and expired_at is null and expires_at > '-infinity';
drop index concurrently if exists role_grant_offer_pending_expires;
create index concurrently if not exists role_grant_offer_open_scope on role_grant_offer (scope_kind, scope_id)
  where accepted_at is null and declined_at is null and retracted_at is null and superseded_at is null
    and expired_at is null and scope_id is not null;
drop index concurrently if exists role_grant_offer_pending_scope;

-- cellkeep: kind=index needs=0.1.0
-- The holders of a role: everywhere first, then scope by scope, the oldest grant first.
create index concurrently if not exists role_grant_live_role on role_grant (
  role, (coalesce(scope_id, '00000000-0000-0000-0000-000000000000')), (coalesce(scope_kind, '')), created_at, id
) where revoked_at is null and closed_at is null;

create index concurrently if not exists api_token_created on api_token (created_at, id);

-- What one actor did, and what was done to it. Most rows have no target.
create index concurrently if not exists audit_log_actor on audit_log (actor_id, seq) where actor_id is not null and seq is not null;
create index concurrently if not exists audit_log_target_actor on audit_log (target_actor_id, seq)
  where target_actor_id is not null and seq is not null;

-- Accounts whose password came with an import.
create index concurrently if not exists account_hash_foreign on account (id) where hash_foreign;

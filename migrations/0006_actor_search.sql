-- cellkeep: kind=expand needs=0.1.0
-- For actor_search by scope, which starts at the scopes and finds the actors with grants there.

create index if not exists role_grant_live_scope_id on role_grant (scope_id, actor_id)
  where scope_id is not null and revoked_at is null and closed_at is null;

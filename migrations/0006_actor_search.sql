-- actor_search by scope goes from the scopes to their holders.

create index if not exists role_grant_live_scope_id on role_grant (scope_id, actor_id)
  where scope_id is not null and revoked_at is null and closed_at is null;

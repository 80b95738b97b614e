-- The holders of a role: everywhere first, then scope by scope, the oldest grant first.
create index if not exists role_grant_live_role on role_grant (
  role, (coalesce(scope_id, '00000000-0000-0000-0000-000000000000')), (coalesce(scope_kind, '')), created_at, id
) where revoked_at is null and closed_at is null;

create index if not exists api_token_created on api_token (created_at, id);

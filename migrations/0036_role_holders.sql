-- cellkeep: kind=index needs=0.1.0
-- Holds only for who names the role: `role <> ''`. From statistics of ended grants PostgreSQL expects one grant that has
-- not, and would read this index whole for the grants of an actor, at each request.
create index concurrently if not exists role_grant_live_holder on role_grant (
  role, (coalesce(scope_id, '00000000-0000-0000-0000-000000000000')), (coalesce(scope_kind, '')), created_at, id
) where revoked_at is null and closed_at is null and role <> '';
drop index concurrently if exists role_grant_live_role;

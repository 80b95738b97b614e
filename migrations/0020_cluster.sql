-- cellkeep: kind=expand needs=0.1.0
-- Which database this is. A node refuses a server with another id: it would be a restored or foreign one. Nodes compare
-- their settings by digests that are keyed with the salt.

create table if not exists cluster (
  is_only boolean primary key default true,
  id uuid not null default gen_random_uuid(),
  salt uuid not null default gen_random_uuid(),
  constraint cluster_single check (is_only)
);
insert into cluster default values on conflict do nothing;

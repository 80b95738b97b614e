-- cellkeep: kind=expand needs=0.1.0
-- Cells, their edges and their grants. "Live" indexes exclude tombstones.

create table if not exists cell (
  id uuid primary key default gen_random_uuid(),
  kind text collate "C",
  visibility text collate "C" not null default 'private',
  path text collate "C",
  data jsonb not null,
  -- Size as compact JSON, computed by the service.
  data_bytes integer not null,
  version integer not null default 1,
  created_by uuid references actor (id) on delete set null,
  updated_by uuid references actor (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3),
  changed_at timestamptz(3) not null generated always as (coalesce(updated_at, created_at)) stored,
  deleted_at timestamptz(3),
  constraint cell_kind_length check (char_length(kind) between 1 and 128),
  constraint cell_visibility check (visibility in ('private', 'public')),
  constraint cell_path_length check (char_length(path) between 1 and 256),
  constraint cell_data_object check (jsonb_typeof(data) = 'object'),
  constraint cell_data_no_kind check (not data ? 'kind'),
  -- The text form exceeds data_bytes by this much only for numbers with huge exponents.
  constraint cell_data_text_size check (octet_length(data::text) <= 524288),
  constraint cell_data_bytes check (data_bytes between 2 and 262144),
  constraint cell_version check (version >= 1),
  constraint cell_updated_after_created check (updated_at >= created_at)
);
-- No path is empty. The extra condition keeps the planner from using this index for lists, which would scan
-- hidden cells through it.
create unique index if not exists cell_path on cell (path)
  where deleted_at is null and path is not null and path <> '';
create index if not exists cell_live_path on cell (visibility, path)
  where deleted_at is null and path is not null;
create index if not exists cell_live_created on cell (visibility, created_at, id) where deleted_at is null;
create index if not exists cell_live_changed on cell (visibility, changed_at, id) where deleted_at is null;
create index if not exists cell_live_kind_created on cell (visibility, kind, created_at, id)
  where deleted_at is null;
create index if not exists cell_live_kind_changed on cell (visibility, kind, changed_at, id)
  where deleted_at is null;
create index if not exists cell_live_own_created on cell (created_by, visibility, created_at, id)
  where deleted_at is null;
create index if not exists cell_live_own_changed on cell (created_by, visibility, changed_at, id)
  where deleted_at is null;
create index if not exists cell_live_own_kind_created on cell (created_by, visibility, kind, created_at, id)
  where deleted_at is null and kind is not null;
create index if not exists cell_live_own_kind_changed on cell (created_by, visibility, kind, changed_at, id)
  where deleted_at is null and kind is not null;
create index if not exists cell_live_own_path on cell (created_by, visibility, path)
  where deleted_at is null and path is not null;
-- Cells with a path in the order of a list, with the columns that a list filters by.
create index if not exists cell_live_path_created
  on cell (visibility, created_at, id, path, kind)
  where deleted_at is null and path is not null;
create index if not exists cell_live_path_changed
  on cell (visibility, changed_at, id, path, kind)
  where deleted_at is null and path is not null;
create index if not exists cell_live_own_path_created
  on cell (created_by, visibility, created_at, id, path, kind)
  where deleted_at is null and path is not null;
create index if not exists cell_live_own_path_changed
  on cell (created_by, visibility, changed_at, id, path, kind)
  where deleted_at is null and path is not null;
-- With tombstones: the purge of an actor clears their references too.
create index if not exists cell_created_by on cell (created_by);
create index if not exists cell_updated_by on cell (updated_by) where updated_by is not null;
create index if not exists cell_deleted on cell (deleted_at) where deleted_at is not null;

create table if not exists cell_grant (
  id uuid primary key default gen_random_uuid(),
  cell_id uuid not null references cell (id) on delete cascade,
  level text collate "C" not null,
  actor_id uuid references actor (id) on delete cascade,
  role text collate "C",
  scope_id uuid,
  -- The key for access checks and uniqueness.
  principal text collate "C" not null generated always as (
    case
      when actor_id is not null then 'a:' || actor_id::text
      else 'r:' || coalesce(scope_id::text, '*') || ':' || role
    end
  ) stored,
  -- Copy of the cell's created_at, which never changes: lists of granted cells in that order need no join.
  cell_created_at timestamptz(3) not null,
  granted_by uuid references actor (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  constraint cell_grant_cell_principal_key unique (cell_id, principal),
  constraint cell_grant_level check (level in ('viewer', 'editor')),
  constraint cell_grant_one_principal check (num_nonnulls(actor_id, role) = 1),
  constraint cell_grant_scope_of_role check (scope_id is null or role is not null)
);
create index if not exists cell_grant_principal on cell_grant (principal, cell_created_at, cell_id);
create index if not exists cell_grant_cell on cell_grant (cell_id, created_at, id);
create index if not exists cell_grant_actor on cell_grant (actor_id) where actor_id is not null;
create index if not exists cell_grant_granted_by on cell_grant (granted_by) where granted_by is not null;

create table if not exists cell_field (
  source_id uuid not null references cell (id) on delete cascade,
  name text collate "C" not null,
  target_id uuid not null references cell (id) on delete cascade,
  created_at timestamptz(3) not null default now(),
  primary key (source_id, name),
  constraint cell_field_name_form check (name ~ '^[a-z][a-z0-9_]{0,63}$')
);
create index if not exists cell_field_target on cell_field (target_id, created_at, source_id, name);

create table if not exists cell_item (
  parent_id uuid not null references cell (id) on delete cascade,
  position text collate "C" not null,
  child_id uuid not null references cell (id) on delete cascade,
  created_at timestamptz(3) not null default now(),
  primary key (parent_id, position),
  constraint cell_item_position_form check (position ~ '^[0-9A-Za-z]{1,200}$')
);
create index if not exists cell_item_child on cell_item (child_id, created_at, parent_id, position);

-- Indexes of cell: those that a list or an upkeep of its own cannot do without. Under a prefix, lists go by path.
drop index if exists cell_live_path_created;
drop index if exists cell_live_path_changed;
drop index if exists cell_live_own_path_created;
drop index if exists cell_live_own_path_changed;

-- By path for those who see cells without a grant: the public ones for everybody, the private ones for their owner.
create index if not exists cell_audience_path on cell (
  (case when visibility = 'public' then 'public' else coalesce(created_by::text, 'nobody') end collate "C"),
  path
) where deleted_at is null and path is not null;
drop index if exists cell_live_path;
drop index if exists cell_live_own_path;

-- Tombstones too, since the purge of an actor lets go of them; lists find them apart.
create index if not exists cell_own_created on cell
  (created_by, visibility, (deleted_at is null), created_at, id);
drop index if exists cell_live_own_created;
drop index if exists cell_created_by;

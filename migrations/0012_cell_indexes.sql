-- cellkeep: kind=index needs=0.1.0
-- Keeps only the indexes of cell that a list or a cleanup needs. Lists under a path prefix are ordered by path.

-- By path, for cells visible without a grant: public ones to everybody, private ones to their owner.
create index concurrently if not exists cell_audience_path on cell (
  (case when visibility = 'public' then 'public' else coalesce(created_by::text, 'nobody') end collate "C"),
  path
) where deleted_at is null and path is not null;
drop index concurrently if exists cell_live_path;
drop index concurrently if exists cell_live_path_created;
drop index concurrently if exists cell_live_path_changed;
drop index concurrently if exists cell_live_own_path;
drop index concurrently if exists cell_live_own_path_created;
drop index concurrently if exists cell_live_own_path_changed;

-- Includes tombstones, since the purge of an actor clears their reference; lists skip them by the third column.
create index concurrently if not exists cell_own_created on cell
  (created_by, visibility, (deleted_at is null), created_at, id);
drop index concurrently if exists cell_live_own_created;
drop index concurrently if exists cell_created_by;

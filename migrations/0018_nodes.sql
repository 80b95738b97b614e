-- cellkeep: kind=expand needs=0.1.0
-- The serving processes of this database. Nothing here decides a request.

-- Written by each node every few seconds, in place: no index but the key, and room in each page.
create table if not exists node (
  id text collate "C" primary key,
  name text collate "C" not null,
  version text collate "C" not null,
  -- The newest migration that it has.
  known_step text collate "C" not null,
  pid integer not null,
  started_at timestamptz(3) not null,
  seen_at timestamptz(3) not null,
  state text collate "C" not null,
  -- What an operator wants of it.
  wanted text collate "C" not null default 'run',
  info jsonb not null default '{}',
  constraint node_wanted check (wanted in ('run', 'drain'))
) with (fillfactor = 50);

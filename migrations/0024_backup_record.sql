-- cellkeep: kind=expand needs=0.1.0
-- When `cellkeep backup` last ended well; null: not since this database was made.
alter table cluster add column if not exists backed_up_at timestamptz(3);

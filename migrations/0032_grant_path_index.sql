-- cellkeep: kind=index needs=0.1.0
create index concurrently if not exists cell_grant_path on cell_grant (principal, cell_path, cell_id)
  where cell_path is not null;

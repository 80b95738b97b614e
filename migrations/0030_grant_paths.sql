-- cellkeep: kind=expand needs=0.1.0
-- Copy of the cell's path, kept by whoever changes it: lists of granted cells by path need no join.
alter table cell_grant add column if not exists cell_path text collate "C";

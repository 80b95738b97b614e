-- cellkeep: kind=expand needs=0.1.0
-- Tables whose rows come and go are vacuumed after a fiftieth of them, not a fifth, so that they and their indexes stay
-- small. Rows of the log only come: they are frozen early, and the index of a list needs no look into the table.
alter table cell set (autovacuum_vacuum_scale_factor = 0.02);
alter table auth_session set (autovacuum_vacuum_scale_factor = 0.02);
alter table limiter_charge set (autovacuum_vacuum_scale_factor = 0.02);
alter table idempotency_key set (autovacuum_vacuum_scale_factor = 0.02);
alter table audit_log set (autovacuum_vacuum_insert_scale_factor = 0.05);
-- One row that is written all the time: its new versions stay on its page.
alter table audit_position set (fillfactor = 50);

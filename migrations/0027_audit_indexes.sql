-- cellkeep: kind=index needs=0.1.0
-- The indexes of the log as the first partition of a divided one: its old ones leave out rows without a number.
create unique index concurrently if not exists audit_log_0_pkey on audit_log (seq);
create index concurrently if not exists audit_log_0_event on audit_log (event_type, seq);
create index concurrently if not exists audit_log_0_account on audit_log (account_id, seq);
create index concurrently if not exists audit_log_0_target on audit_log (target_account_id, seq);
create index concurrently if not exists audit_log_0_failure on audit_log (seq) where outcome = 'failure';
create index concurrently if not exists audit_log_0_failure_event on audit_log (event_type, seq)
  where outcome = 'failure';
create index concurrently if not exists audit_log_0_created on audit_log (created_at);
create index concurrently if not exists audit_log_0_actor on audit_log (actor_id, seq) where actor_id is not null;
create index concurrently if not exists audit_log_0_target_actor on audit_log (target_actor_id, seq)
  where target_actor_id is not null;

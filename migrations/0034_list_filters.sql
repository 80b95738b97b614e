-- cellkeep: kind=index needs=0.1.0
-- The messages of one state and the links of one purpose, such as the few that failed among all that were sent.
create index concurrently if not exists message_outbox_state on message_outbox (state, created_at, id);
create index concurrently if not exists account_ticket_purpose on account_ticket (purpose, created_at, id);

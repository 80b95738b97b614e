-- cellkeep: kind=expand needs=0.1.0
-- Keys under which mutations were carried out, so that a caller without an answer may repeat one safely. The row is
-- written by the transaction of the mutation and shares its fate.
create table if not exists idempotency_key (
  -- No foreign key: its lock on the account would come before those that mutations take in order. A purge deletes
  -- the rows itself.
  account_id uuid not null,
  -- SHA-256 of the key.
  key_hash bytea not null,
  -- SHA-256 of the key, the method, the actor and the input.
  request_hash bytea not null,
  -- The text of {"result": …} or {"error": …}, as a JSON string: jsonb would write it differently, and refuses U+0000.
  -- Null if the reply holds a secret or is too large.
  reply jsonb,
  -- When the mutation was done.
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null default now() + interval '24 hours',
  primary key (account_id, key_hash)
);
create index if not exists idempotency_key_expires on idempotency_key (expires_at);

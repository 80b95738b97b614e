-- cellkeep: kind=expand needs=0.1.0
-- Accounts, actors and credentials. Text compares bytewise, whatever the default collation of the
-- database is. `*_by` columns are plain ids without a reference: they outlive the account or actor.

-- Formats a time for the wire inside JSON built by SQL. A plain timestamptz column doesn't need it: the
-- driver produces the same form. Stable like to_char: declared immutable, it would not be inlined.
create or replace function iso_timestamp(at timestamptz) returns text
language sql stable strict parallel safe
as $$ select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

create table if not exists account (
  id uuid primary key default gen_random_uuid(),
  username text collate "C" not null,
  email text collate "C",
  -- fold(email), computed by the service: the form that is unique and searched.
  email_key text collate "C",
  email_verified boolean not null default false,
  password_hash text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  created_by uuid,
  updated_at timestamptz(3) not null default now(),
  updated_by uuid,
  deleted_at timestamptz(3),
  deleted_by uuid,
  constraint account_username_key unique (username),
  constraint account_username_lower check (username = lower(username)),
  constraint account_email_folded check ((email is null) = (email_key is null))
);
create unique index if not exists account_email_key on account (email_key) where email_key is not null;
create index if not exists account_created on account (created_at, id);

create table if not exists actor (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references account (id) on delete cascade,
  name text collate "C" not null,
  -- fold(name), for prefix searches.
  name_key text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3),
  updated_by uuid,
  deleted_at timestamptz(3),
  deleted_by uuid,
  deleted_with_account boolean not null default false
);
create index if not exists actor_account on actor (account_id, created_at, id);
create index if not exists actor_name on actor (name_key, id) where deleted_at is null;

create table if not exists auth_session (
  -- SHA-256 of the cookie's token, so that a dump of this table gives nobody a session.
  id text collate "C" primary key,
  account_id uuid not null references account (id) on delete cascade,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  constraint auth_session_id_form check (id ~ '^[0-9a-f]{64}$')
);
create index if not exists auth_session_account on auth_session (account_id, created_at, id);
create index if not exists auth_session_created on auth_session (created_at, id);
create index if not exists auth_session_expires on auth_session (expires_at);

create table if not exists api_token (
  id text collate "C" primary key,
  account_id uuid not null references account (id) on delete cascade,
  name text collate "C" not null,
  token_hash text collate "C" not null,
  scope jsonb not null,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  last_used_ip text collate "C",
  constraint api_token_hash_key unique (token_hash),
  constraint api_token_scope_object check (jsonb_typeof(scope) = 'object')
);
create index if not exists api_token_account on api_token (account_id, created_at, id);
create index if not exists api_token_expires on api_token (expires_at) where expires_at is not null;

create table if not exists bootstrap_lock (
  id integer primary key default 1,
  bootstrapped boolean not null default false,
  constraint bootstrap_lock_single check (id = 1)
);
insert into bootstrap_lock (id) values (1) on conflict do nothing;

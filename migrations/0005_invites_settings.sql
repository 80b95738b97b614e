-- cellkeep: kind=expand needs=0.1.0
-- Invites and the settings of the application.

create table if not exists invite (
  id uuid primary key default gen_random_uuid(),
  email text collate "C",
  -- fold(email), computed by the service: the form that is unique and matched.
  email_key text collate "C",
  username text collate "C",
  expires_at timestamptz(3),
  claimed_by uuid references account (id) on delete set null,
  -- Kept when the claimant is purged: a claimed invite never becomes open again.
  claimed_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  created_by uuid,
  constraint invite_identifier check (num_nonnulls(email, username) >= 1),
  constraint invite_email_folded check ((email is null) = (email_key is null)),
  constraint invite_username_lower check (username = lower(username)),
  constraint invite_claimant_claimed check (claimed_by is null or claimed_at is not null)
);
create unique index if not exists invite_open_email on invite (email_key)
  where email_key is not null and claimed_at is null;
create unique index if not exists invite_open_username on invite (username)
  where username is not null and claimed_at is null;
create index if not exists invite_created on invite (created_at, id);
create index if not exists invite_claimed_by on invite (claimed_by);

create table if not exists app_settings (
  id integer primary key default 1,
  open_signup boolean not null default false,
  updated_at timestamptz(3),
  updated_by uuid,
  constraint app_settings_single check (id = 1)
);
insert into app_settings (id) values (1) on conflict do nothing;

-- cellkeep: kind=expand needs=0.1.0
-- One-time links, messages to people, second factors, passkeys, providers, reserved names, imports.

-- What a session has proven, and when. Sessions from before count as proven a day ago, which is fresh nowhere: one
-- value for all of them is stored once, while a time for each would be written with all requests waiting.
alter table auth_session
  add column if not exists authenticated_at timestamptz(3) not null default now() - interval '1 day';
alter table auth_session alter column authenticated_at set default now();
alter table auth_session add column if not exists methods text[] collate "C" not null default '{}';
alter table auth_session add column if not exists strong boolean not null default false;
alter table api_token add column if not exists strong boolean not null default false;

-- True: the hash came with an import, in a foreign format; the next login replaces it.
alter table account add column if not exists hash_foreign boolean not null default false;
-- How long a failed login takes at least while such hashes exist.
alter table app_settings add column if not exists import_floor_ms integer;

create table if not exists account_ticket (
  id uuid primary key default gen_random_uuid(),
  purpose text collate "C" not null,
  token_hash text collate "C" not null,
  account_id uuid references account (id) on delete cascade,
  invite_id uuid references invite (id) on delete cascade,
  -- The address that the ticket proves or changes to; email_key is its folded form.
  email text collate "C",
  email_key text collate "C",
  delivery text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  created_by uuid,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  voided_at timestamptz(3),
  constraint account_ticket_token_key unique (token_hash),
  constraint account_ticket_owner check (num_nonnulls(account_id, invite_id) = 1),
  constraint account_ticket_end check (num_nonnulls(used_at, voided_at) <= 1),
  constraint account_ticket_delivery check (delivery in ('mailed', 'revealed')),
  constraint account_ticket_email_folded check ((email is null) = (email_key is null))
);
create index if not exists account_ticket_account on account_ticket (account_id, purpose, created_at, id);
create index if not exists account_ticket_invite on account_ticket (invite_id);
create index if not exists account_ticket_created on account_ticket (created_at, id);
create index if not exists account_ticket_expires on account_ticket (expires_at);

create table if not exists message_outbox (
  id uuid primary key default gen_random_uuid(),
  purpose text collate "C" not null,
  notice text collate "C",
  account_id uuid references account (id) on delete cascade,
  invite_id uuid references invite (id) on delete cascade,
  ticket_id uuid,
  to_address text collate "C",
  link_sealed text collate "C",
  locale text collate "C" not null,
  state text collate "C" not null default 'queued',
  attempts integer not null default 0,
  error text collate "C",
  created_at timestamptz(3) not null default now(),
  next_attempt_at timestamptz(3) default now(),
  leased_until timestamptz(3),
  expires_at timestamptz(3) not null,
  finished_at timestamptz(3),
  constraint message_outbox_state check (state in ('queued', 'sent', 'failed', 'suppressed')),
  -- A message that is done with keeps neither its address nor its link.
  constraint message_outbox_done check (
    (state = 'queued') = (finished_at is null)
    and (state = 'queued' or (to_address is null and link_sealed is null))
  )
);
create index if not exists message_outbox_due on message_outbox (next_attempt_at) where state = 'queued';
-- Texts sealed by older keys are found by their first characters.
create index if not exists message_outbox_sealed on message_outbox (left(link_sealed, 12)) where link_sealed is not null;
create index if not exists message_outbox_created on message_outbox (created_at, id);
create index if not exists message_outbox_account on message_outbox (account_id) where account_id is not null;
create index if not exists message_outbox_invite on message_outbox (invite_id) where invite_id is not null;
create index if not exists message_outbox_ticket on message_outbox (ticket_id) where ticket_id is not null;

-- What lies between two steps of a sign-in. Lost in a crash of the database, which costs people a second try.
create unlogged table if not exists sign_in_flow (
  -- SHA-256 of the flow cookie's token; for the registration of a passkey the id of the session.
  id text collate "C" primary key,
  kind text collate "C" not null,
  account_id uuid references account (id) on delete cascade,
  session_id text collate "C",
  provider text collate "C",
  intent text collate "C",
  challenge text collate "C",
  methods text[] collate "C",
  invite_id uuid,
  attempts integer not null default 0,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null
);
create index if not exists sign_in_flow_account on sign_in_flow (account_id, created_at);
create index if not exists sign_in_flow_expires on sign_in_flow (expires_at);

create table if not exists account_totp (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references account (id) on delete cascade,
  secret_sealed text collate "C" not null,
  session_id text collate "C",
  -- The newest time step whose code was used: none is accepted twice.
  last_step bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  confirmed_at timestamptz(3),
  last_used_at timestamptz(3)
);
create index if not exists account_totp_sealed on account_totp (left(secret_sealed, 12));
-- One in use and one about to replace it.
create unique index if not exists account_totp_account on account_totp (account_id, (confirmed_at is null));

create index if not exists account_totp_pending on account_totp (created_at) where confirmed_at is null;

create table if not exists account_recovery_code (
  account_id uuid not null references account (id) on delete cascade,
  code_hash text collate "C" not null,
  primary key (account_id, code_hash)
);

create table if not exists account_passkey (
  id text collate "C" primary key,
  account_id uuid not null references account (id) on delete cascade,
  public_key bytea not null,
  counter bigint not null,
  transports text[] collate "C",
  device text collate "C" not null,
  backed_up boolean not null,
  aaguid uuid,
  first_factor boolean not null,
  second_factor boolean not null,
  rp_id text collate "C" not null,
  name text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  constraint account_passkey_device check (device in ('single', 'synced'))
);
create index if not exists account_passkey_account on account_passkey (account_id, created_at, id);

create table if not exists account_link (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references account (id) on delete cascade,
  provider text collate "C" not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  constraint account_link_identity_key unique (issuer, subject),
  constraint account_link_provider_key unique (account_id, provider)
);

-- Former usernames, kept for their account so that nobody else takes them over.
create table if not exists username_reservation (
  username text collate "C" primary key,
  account_id uuid not null references account (id) on delete cascade,
  until timestamptz(3)
);
create index if not exists username_reservation_account on username_reservation (account_id);

-- Which lines of which source have become accounts, so that an import can go on where it stopped.
create table if not exists account_import (
  source text collate "C" not null,
  external_id text collate "C" not null,
  account_id uuid not null references account (id) on delete cascade,
  primary key (source, external_id)
);
create index if not exists account_import_account on account_import (account_id);

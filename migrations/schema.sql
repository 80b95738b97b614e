-- Made by `npm run schema` from a freshly migrated database. Do not edit.

create table account (
  id uuid not null default gen_random_uuid(),
  username text collate "C" not null,
  email text collate "C",
  email_key text collate "C",
  email_verified boolean not null default false,
  password_hash text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  created_by uuid,
  updated_at timestamp(3) with time zone not null default now(),
  updated_by uuid,
  deleted_at timestamp(3) with time zone,
  deleted_by uuid,
  hash_foreign boolean not null default false
);

create table account_address (
  account_id uuid not null,
  address text collate "C" not null,
  last_at timestamp(3) with time zone not null default now()
);

create table account_import (
  source text collate "C" not null,
  external_id text collate "C" not null,
  account_id uuid not null
);

create table account_link (
  id uuid not null default gen_random_uuid(),
  account_id uuid not null,
  provider text collate "C" not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  last_used_at timestamp(3) with time zone
);

create table account_passkey (
  id text collate "C" not null,
  account_id uuid not null,
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
  created_at timestamp(3) with time zone not null default now(),
  last_used_at timestamp(3) with time zone
);

create table account_recovery_code (
  account_id uuid not null,
  code_hash text collate "C" not null
);

create table account_ticket (
  id uuid not null default gen_random_uuid(),
  purpose text collate "C" not null,
  token_hash text collate "C" not null,
  account_id uuid,
  invite_id uuid,
  email text collate "C",
  email_key text collate "C",
  delivery text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  created_by uuid,
  expires_at timestamp(3) with time zone not null,
  used_at timestamp(3) with time zone,
  voided_at timestamp(3) with time zone
);

create table account_totp (
  id uuid not null default gen_random_uuid(),
  account_id uuid not null,
  secret_sealed text collate "C" not null,
  session_id text collate "C",
  last_step bigint not null default 0,
  created_at timestamp(3) with time zone not null default now(),
  confirmed_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone
);

create table actor (
  id uuid not null default gen_random_uuid(),
  account_id uuid not null,
  name text collate "C" not null,
  name_key text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone,
  updated_by uuid,
  deleted_at timestamp(3) with time zone,
  deleted_by uuid,
  deleted_with_account boolean not null default false
);

create table api_token (
  id text collate "C" not null,
  account_id uuid not null,
  name text collate "C" not null,
  token_hash text collate "C" not null,
  scope jsonb not null,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone,
  last_used_ip text collate "C",
  strong boolean not null default false
);

create table app_settings (
  id integer not null default 1,
  open_signup boolean not null default false,
  updated_at timestamp(3) with time zone,
  updated_by uuid,
  import_floor_ms integer
);

create table audit_cell (
  cell_id uuid not null,
  seq bigint not null
) partition by range (seq);

create table audit_inbox (
  written bigint not null generated always as identity,
  id uuid not null default gen_random_uuid(),
  event_type text collate "C" not null,
  outcome text collate "C" not null,
  actor_id uuid,
  account_id uuid,
  target_actor_id uuid,
  target_account_id uuid,
  ip text collate "C",
  created_at timestamp(3) with time zone not null default clock_timestamp(),
  metadata jsonb,
  cell_ids uuid[]
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0);

create table audit_log (
  id uuid not null default gen_random_uuid(),
  seq bigint not null,
  written bigint,
  event_type text collate "C" not null,
  outcome text collate "C" not null,
  actor_id uuid,
  account_id uuid,
  target_actor_id uuid,
  target_account_id uuid,
  ip text collate "C",
  created_at timestamp(3) with time zone not null default clock_timestamp(),
  metadata jsonb,
  cell_ids uuid[]
) partition by range (seq);

create table audit_loss (
  id integer not null default 1,
  lost_rows bigint not null,
  since timestamp(3) with time zone not null default clock_timestamp(),
  last_at timestamp(3) with time zone not null default clock_timestamp(),
  cause text collate "C" not null
);

create table audit_position (
  id integer not null default 1,
  seq bigint not null default 0,
  removed_seq bigint not null default 0,
  timeline text collate "C",
  partition_rows bigint not null default 10000000
) with (fillfactor=50);

create table auth_session (
  id text collate "C" not null,
  account_id uuid not null,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null,
  authenticated_at timestamp(3) with time zone not null default now(),
  methods text[] collate "C" not null default '{}'::text[],
  strong boolean not null default false
) with (autovacuum_vacuum_scale_factor=0.02);

create table bootstrap_lock (
  id integer not null default 1,
  bootstrapped boolean not null default false
);

create table cell (
  id uuid not null default gen_random_uuid(),
  kind text collate "C",
  visibility text collate "C" not null default 'private'::text,
  path text collate "C",
  data jsonb not null,
  data_bytes integer not null,
  version integer not null default 1,
  created_by uuid,
  updated_by uuid,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone,
  changed_at timestamp(3) with time zone not null generated always as (COALESCE(updated_at, created_at)) stored,
  deleted_at timestamp(3) with time zone
) with (autovacuum_vacuum_scale_factor=0.02);

create table cell_field (
  source_id uuid not null,
  name text collate "C" not null,
  target_id uuid not null,
  created_at timestamp(3) with time zone not null default now()
);

create table cell_grant (
  id uuid not null default gen_random_uuid(),
  cell_id uuid not null,
  level text collate "C" not null,
  actor_id uuid,
  role text collate "C",
  scope_id uuid,
  principal text collate "C" not null generated always as ( CASE WHEN actor_id IS NOT NULL THEN 'a:'::text || actor_id::text ELSE (('r:'::text || COALESCE(scope_id::text, '*'::text)) || ':'::text) || role END) stored,
  cell_created_at timestamp(3) with time zone not null,
  granted_by uuid,
  created_at timestamp(3) with time zone not null default now(),
  cell_path text collate "C"
);

create table cell_item (
  parent_id uuid not null,
  "position" text collate "C" not null,
  child_id uuid not null,
  created_at timestamp(3) with time zone not null default now()
);

create table cell_usage (
  account_id uuid not null,
  shard integer not null,
  cells bigint not null,
  bytes bigint not null
);

create table cluster (
  is_only boolean not null default true,
  id uuid not null default gen_random_uuid(),
  salt uuid not null default gen_random_uuid(),
  backed_up_at timestamp(3) with time zone
);

create table idempotency_key (
  account_id uuid not null,
  key_hash bytea not null,
  request_hash bytea not null,
  reply jsonb,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null default (now() + '24:00:00'::interval)
) with (autovacuum_vacuum_scale_factor=0.02);

create table invite (
  id uuid not null default gen_random_uuid(),
  email text collate "C",
  email_key text collate "C",
  username text collate "C",
  expires_at timestamp(3) with time zone,
  claimed_by uuid,
  claimed_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null default now(),
  created_by uuid
);

create unlogged table limiter_charge (
  limiter text collate "C" not null,
  key text collate "C" not null,
  at timestamp(3) with time zone not null,
  charges integer not null default 1,
  slot uuid,
  expires_at timestamp(3) with time zone not null,
  id uuid not null default gen_random_uuid()
) with (autovacuum_vacuum_scale_factor=0.02);

create table message_outbox (
  id uuid not null default gen_random_uuid(),
  purpose text collate "C" not null,
  notice text collate "C",
  account_id uuid,
  invite_id uuid,
  ticket_id uuid,
  to_address text collate "C",
  link_sealed text collate "C",
  locale text collate "C" not null,
  state text collate "C" not null default 'queued'::text,
  attempts integer not null default 0,
  error text collate "C",
  created_at timestamp(3) with time zone not null default now(),
  next_attempt_at timestamp(3) with time zone default now(),
  leased_until timestamp(3) with time zone,
  expires_at timestamp(3) with time zone not null,
  finished_at timestamp(3) with time zone
);

create table node (
  id text collate "C" not null,
  name text collate "C" not null,
  version text collate "C" not null,
  known_step text collate "C" not null,
  pid integer not null,
  started_at timestamp(3) with time zone not null,
  seen_at timestamp(3) with time zone not null,
  state text collate "C" not null,
  wanted text collate "C" not null default 'run'::text,
  info jsonb not null default '{}'::jsonb
) with (fillfactor=50);

create table role_grant (
  id uuid not null default gen_random_uuid(),
  actor_id uuid not null,
  role text collate "C" not null,
  scope_kind text collate "C",
  scope_id uuid,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone,
  revoked_at timestamp(3) with time zone,
  revoked_by uuid,
  revoked_reason text collate "C",
  closed_at timestamp(3) with time zone,
  granted_by uuid,
  source_offer_id uuid
);

create table role_grant_offer (
  offer_id uuid not null default gen_random_uuid(),
  from_actor_id uuid not null,
  from_account_id uuid not null,
  to_account_id uuid not null,
  to_actor_id uuid,
  role text collate "C" not null,
  scope_kind text collate "C",
  scope_id uuid,
  message text collate "C",
  grant_expires_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null,
  accepted_at timestamp(3) with time zone,
  declined_at timestamp(3) with time zone,
  retracted_at timestamp(3) with time zone,
  superseded_at timestamp(3) with time zone,
  expired_at timestamp(3) with time zone,
  decline_reason text collate "C",
  resulting_role_grant_id uuid
);

create table role_scope_destroyed (
  scope_kind text collate "C" not null,
  scope_id uuid not null,
  destroyed_at timestamp(3) with time zone not null default now()
);

create table schema_migration (
  name text collate "C" not null,
  applied_at timestamp(3) with time zone not null default now(),
  kind text collate "C" not null default 'expand'::text,
  needs text collate "C",
  state text collate "C" not null default 'done'::text,
  started_at timestamp(3) with time zone,
  done_at timestamp(3) with time zone,
  done_rows bigint,
  total_rows bigint,
  cursor jsonb
);

create unlogged table sign_in_flow (
  id text collate "C" not null,
  kind text collate "C" not null,
  account_id uuid,
  session_id text collate "C",
  provider text collate "C",
  intent text collate "C",
  challenge text collate "C",
  methods text[] collate "C",
  invite_id uuid,
  attempts integer not null default 0,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null
);

create table username_reservation (
  username text collate "C" not null,
  account_id uuid not null,
  until timestamp(3) with time zone
);

alter table account add constraint account_email_folded CHECK ((email IS NULL) = (email_key IS NULL));
alter table account add constraint account_username_lower CHECK (username = lower(username));
alter table account add constraint account_pkey PRIMARY KEY (id);
alter table account add constraint account_username_key UNIQUE (username);
alter table account_address add constraint account_address_pkey PRIMARY KEY (account_id, address);
alter table account_import add constraint account_import_pkey PRIMARY KEY (source, external_id);
alter table account_link add constraint account_link_pkey PRIMARY KEY (id);
alter table account_link add constraint account_link_identity_key UNIQUE (issuer, subject);
alter table account_link add constraint account_link_provider_key UNIQUE (account_id, provider);
alter table account_passkey add constraint account_passkey_device CHECK (device = ANY (ARRAY['single'::text, 'synced'::text]));
alter table account_passkey add constraint account_passkey_pkey PRIMARY KEY (id);
alter table account_recovery_code add constraint account_recovery_code_pkey PRIMARY KEY (account_id, code_hash);
alter table account_ticket add constraint account_ticket_delivery CHECK (delivery = ANY (ARRAY['mailed'::text, 'revealed'::text]));
alter table account_ticket add constraint account_ticket_email_folded CHECK ((email IS NULL) = (email_key IS NULL));
alter table account_ticket add constraint account_ticket_end CHECK (num_nonnulls(used_at, voided_at) <= 1);
alter table account_ticket add constraint account_ticket_owner CHECK (num_nonnulls(account_id, invite_id) = 1);
alter table account_ticket add constraint account_ticket_pkey PRIMARY KEY (id);
alter table account_ticket add constraint account_ticket_token_key UNIQUE (token_hash);
alter table account_totp add constraint account_totp_pkey PRIMARY KEY (id);
alter table actor add constraint actor_pkey PRIMARY KEY (id);
alter table api_token add constraint api_token_scope_object CHECK (jsonb_typeof(scope) = 'object'::text);
alter table api_token add constraint api_token_pkey PRIMARY KEY (id);
alter table api_token add constraint api_token_hash_key UNIQUE (token_hash);
alter table app_settings add constraint app_settings_single CHECK (id = 1);
alter table app_settings add constraint app_settings_pkey PRIMARY KEY (id);
alter table audit_cell add constraint audit_cell_pkey PRIMARY KEY (cell_id, seq);
alter table audit_inbox add constraint audit_inbox_metadata_object CHECK (jsonb_typeof(metadata) = 'object'::text);
alter table audit_inbox add constraint audit_inbox_outcome CHECK (outcome = ANY (ARRAY['success'::text, 'failure'::text]));
alter table audit_inbox add constraint audit_inbox_pkey PRIMARY KEY (written);
alter table audit_log add constraint audit_log_metadata_object CHECK (jsonb_typeof(metadata) = 'object'::text);
alter table audit_log add constraint audit_log_outcome CHECK (outcome = ANY (ARRAY['success'::text, 'failure'::text]));
alter table audit_log add constraint audit_log_pkey PRIMARY KEY (seq);
alter table audit_loss add constraint audit_loss_single CHECK (id = 1);
alter table audit_loss add constraint audit_loss_pkey PRIMARY KEY (id);
alter table audit_position add constraint audit_position_single CHECK (id = 1);
alter table audit_position add constraint audit_position_pkey PRIMARY KEY (id);
alter table auth_session add constraint auth_session_id_form CHECK (id ~ '^[0-9a-f]{64}$'::text);
alter table auth_session add constraint auth_session_pkey PRIMARY KEY (id);
alter table bootstrap_lock add constraint bootstrap_lock_single CHECK (id = 1);
alter table bootstrap_lock add constraint bootstrap_lock_pkey PRIMARY KEY (id);
alter table cell add constraint cell_data_bytes CHECK (data_bytes >= 2 AND data_bytes <= 262144);
alter table cell add constraint cell_data_no_kind CHECK (NOT data ? 'kind'::text);
alter table cell add constraint cell_data_object CHECK (jsonb_typeof(data) = 'object'::text);
alter table cell add constraint cell_data_text_size CHECK (octet_length(data::text) <= 524288);
alter table cell add constraint cell_kind_length CHECK (char_length(kind) >= 1 AND char_length(kind) <= 128);
alter table cell add constraint cell_path_length CHECK (char_length(path) >= 1 AND char_length(path) <= 256);
alter table cell add constraint cell_updated_after_created CHECK (updated_at >= created_at);
alter table cell add constraint cell_version CHECK (version >= 1);
alter table cell add constraint cell_visibility CHECK (visibility = ANY (ARRAY['private'::text, 'public'::text]));
alter table cell add constraint cell_pkey PRIMARY KEY (id);
alter table cell_field add constraint cell_field_name_form CHECK (name ~ '^[a-z][a-z0-9_]*$'::text AND octet_length(name) <= 64);
alter table cell_field add constraint cell_field_pkey PRIMARY KEY (source_id, name);
alter table cell_grant add constraint cell_grant_level CHECK (level = ANY (ARRAY['viewer'::text, 'editor'::text]));
alter table cell_grant add constraint cell_grant_one_principal CHECK (num_nonnulls(actor_id, role) = 1);
alter table cell_grant add constraint cell_grant_scope_of_role CHECK (scope_id IS NULL OR role IS NOT NULL);
alter table cell_grant add constraint cell_grant_pkey PRIMARY KEY (id);
alter table cell_grant add constraint cell_grant_cell_principal_key UNIQUE (cell_id, principal);
alter table cell_item add constraint cell_item_position_form CHECK ("position" ~ '^[0-9A-Za-z]+$'::text AND octet_length("position") <= 200);
alter table cell_item add constraint cell_item_pkey PRIMARY KEY (parent_id, "position");
alter table cell_usage add constraint cell_usage_shard CHECK (shard >= 0);
alter table cell_usage add constraint cell_usage_pkey PRIMARY KEY (account_id, shard);
alter table cluster add constraint cluster_single CHECK (is_only);
alter table cluster add constraint cluster_pkey PRIMARY KEY (is_only);
alter table idempotency_key add constraint idempotency_key_pkey PRIMARY KEY (account_id, key_hash);
alter table invite add constraint invite_claimant_claimed CHECK (claimed_by IS NULL OR claimed_at IS NOT NULL);
alter table invite add constraint invite_email_folded CHECK ((email IS NULL) = (email_key IS NULL));
alter table invite add constraint invite_identifier CHECK (num_nonnulls(email, username) >= 1);
alter table invite add constraint invite_username_lower CHECK (username = lower(username));
alter table invite add constraint invite_pkey PRIMARY KEY (id);
alter table limiter_charge add constraint limiter_charge_counts CHECK (charges > 0);
alter table limiter_charge add constraint limiter_charge_pkey PRIMARY KEY (id);
alter table message_outbox add constraint message_outbox_done CHECK ((state = 'queued'::text) = (finished_at IS NULL) AND (state = 'queued'::text OR to_address IS NULL AND link_sealed IS NULL));
alter table message_outbox add constraint message_outbox_state CHECK (state = ANY (ARRAY['queued'::text, 'sent'::text, 'failed'::text, 'suppressed'::text]));
alter table message_outbox add constraint message_outbox_pkey PRIMARY KEY (id);
alter table node add constraint node_wanted CHECK (wanted = ANY (ARRAY['run'::text, 'drain'::text]));
alter table node add constraint node_pkey PRIMARY KEY (id);
alter table role_grant add constraint role_grant_reason_revoked CHECK (revoked_reason IS NULL OR revoked_at IS NOT NULL);
alter table role_grant add constraint role_grant_scope_paired CHECK ((scope_kind IS NULL) = (scope_id IS NULL));
alter table role_grant add constraint role_grant_pkey PRIMARY KEY (id);
alter table role_grant_offer add constraint role_grant_offer_one_end CHECK (num_nonnulls(accepted_at, declined_at, retracted_at, superseded_at, expired_at) <= 1);
alter table role_grant_offer add constraint role_grant_offer_reason_declined CHECK (decline_reason IS NULL OR declined_at IS NOT NULL);
alter table role_grant_offer add constraint role_grant_offer_result_accepted CHECK (resulting_role_grant_id IS NULL OR accepted_at IS NOT NULL);
alter table role_grant_offer add constraint role_grant_offer_scope_paired CHECK ((scope_kind IS NULL) = (scope_id IS NULL));
alter table role_grant_offer add constraint role_grant_offer_pkey PRIMARY KEY (offer_id);
alter table role_scope_destroyed add constraint role_scope_destroyed_pkey PRIMARY KEY (scope_kind, scope_id);
alter table schema_migration add constraint schema_migration_kind CHECK (kind = ANY (ARRAY['expand'::text, 'index'::text, 'backfill'::text, 'contract'::text]));
alter table schema_migration add constraint schema_migration_state CHECK (state = ANY (ARRAY['running'::text, 'done'::text]));
alter table schema_migration add constraint schema_migration_pkey PRIMARY KEY (name);
alter table sign_in_flow add constraint sign_in_flow_pkey PRIMARY KEY (id);
alter table username_reservation add constraint username_reservation_pkey PRIMARY KEY (username);
alter table account_address add constraint account_address_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_import add constraint account_import_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_link add constraint account_link_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_passkey add constraint account_passkey_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_recovery_code add constraint account_recovery_code_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_ticket add constraint account_ticket_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table account_ticket add constraint account_ticket_invite_id_fkey FOREIGN KEY (invite_id) REFERENCES invite(id) ON DELETE CASCADE;
alter table account_totp add constraint account_totp_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table actor add constraint actor_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table api_token add constraint api_token_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table auth_session add constraint auth_session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table cell add constraint cell_created_by_fkey FOREIGN KEY (created_by) REFERENCES actor(id) ON DELETE SET NULL;
alter table cell add constraint cell_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES actor(id) ON DELETE SET NULL;
alter table cell_field add constraint cell_field_source_id_fkey FOREIGN KEY (source_id) REFERENCES cell(id) ON DELETE CASCADE;
alter table cell_field add constraint cell_field_target_id_fkey FOREIGN KEY (target_id) REFERENCES cell(id) ON DELETE CASCADE;
alter table cell_grant add constraint cell_grant_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES actor(id) ON DELETE CASCADE;
alter table cell_grant add constraint cell_grant_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES cell(id) ON DELETE CASCADE;
alter table cell_grant add constraint cell_grant_granted_by_fkey FOREIGN KEY (granted_by) REFERENCES actor(id) ON DELETE SET NULL;
alter table cell_item add constraint cell_item_child_id_fkey FOREIGN KEY (child_id) REFERENCES cell(id) ON DELETE CASCADE;
alter table cell_item add constraint cell_item_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES cell(id) ON DELETE CASCADE;
alter table cell_usage add constraint cell_usage_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table invite add constraint invite_claimed_by_fkey FOREIGN KEY (claimed_by) REFERENCES account(id) ON DELETE SET NULL;
alter table message_outbox add constraint message_outbox_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table message_outbox add constraint message_outbox_invite_id_fkey FOREIGN KEY (invite_id) REFERENCES invite(id) ON DELETE CASCADE;
alter table role_grant add constraint role_grant_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES actor(id) ON DELETE CASCADE;
alter table role_grant add constraint role_grant_source_offer_id_fkey FOREIGN KEY (source_offer_id) REFERENCES role_grant_offer(offer_id) ON DELETE SET NULL;
alter table role_grant_offer add constraint role_grant_offer_result_fkey FOREIGN KEY (resulting_role_grant_id) REFERENCES role_grant(id) ON DELETE SET NULL;
alter table role_grant_offer add constraint role_grant_offer_to_account_id_fkey FOREIGN KEY (to_account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table role_grant_offer add constraint role_grant_offer_to_actor_id_fkey FOREIGN KEY (to_actor_id) REFERENCES actor(id) ON DELETE CASCADE;
alter table sign_in_flow add constraint sign_in_flow_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;
alter table username_reservation add constraint username_reservation_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

CREATE INDEX account_address_last ON account_address USING btree (last_at);
CREATE INDEX account_created ON account USING btree (created_at, id);
CREATE UNIQUE INDEX account_email_key ON account USING btree (email_key) WHERE email_key IS NOT NULL;
CREATE INDEX account_hash_foreign ON account USING btree (id) WHERE hash_foreign;
CREATE INDEX account_import_account ON account_import USING btree (account_id);
CREATE INDEX account_passkey_account ON account_passkey USING btree (account_id, created_at, id);
CREATE INDEX account_ticket_account ON account_ticket USING btree (account_id, purpose, created_at, id);
CREATE INDEX account_ticket_created ON account_ticket USING btree (created_at, id);
CREATE INDEX account_ticket_expires ON account_ticket USING btree (expires_at);
CREATE INDEX account_ticket_invite ON account_ticket USING btree (invite_id);
CREATE INDEX account_ticket_purpose ON account_ticket USING btree (purpose, created_at, id);
CREATE UNIQUE INDEX account_totp_account ON account_totp USING btree (account_id, (confirmed_at IS NULL));
CREATE INDEX account_totp_pending ON account_totp USING btree (created_at) WHERE confirmed_at IS NULL;
CREATE INDEX account_totp_sealed ON account_totp USING btree ("left"(secret_sealed, 12));
CREATE INDEX actor_account ON actor USING btree (account_id, created_at, id);
CREATE INDEX actor_name ON actor USING btree (name_key, id) WHERE deleted_at IS NULL;
CREATE INDEX api_token_account ON api_token USING btree (account_id, created_at, id);
CREATE INDEX api_token_created ON api_token USING btree (created_at, id);
CREATE INDEX api_token_expires ON api_token USING btree (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX audit_log_account ON audit_log USING btree (account_id, seq);
CREATE INDEX audit_log_actor ON audit_log USING btree (actor_id, seq) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_created ON audit_log USING btree (created_at);
CREATE INDEX audit_log_event ON audit_log USING btree (event_type, seq);
CREATE INDEX audit_log_failure ON audit_log USING btree (seq) WHERE outcome = 'failure'::text;
CREATE INDEX audit_log_failure_event ON audit_log USING btree (event_type, seq) WHERE outcome = 'failure'::text;
CREATE INDEX audit_log_target ON audit_log USING btree (target_account_id, seq);
CREATE INDEX audit_log_target_actor ON audit_log USING btree (target_actor_id, seq) WHERE target_actor_id IS NOT NULL;
CREATE INDEX auth_session_account ON auth_session USING btree (account_id, created_at, id);
CREATE INDEX auth_session_created ON auth_session USING btree (created_at, id);
CREATE INDEX auth_session_expires ON auth_session USING btree (expires_at);
CREATE INDEX cell_audience_path ON cell USING btree ((
CASE
    WHEN visibility = 'public'::text THEN 'public'::text
    ELSE COALESCE(created_by::text, 'nobody'::text)
END) COLLATE "C", path) WHERE deleted_at IS NULL AND path IS NOT NULL;
CREATE INDEX cell_deleted ON cell USING btree (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX cell_field_target ON cell_field USING btree (target_id, created_at, source_id, name);
CREATE INDEX cell_grant_actor ON cell_grant USING btree (actor_id) WHERE actor_id IS NOT NULL;
CREATE INDEX cell_grant_cell ON cell_grant USING btree (cell_id, created_at, id);
CREATE INDEX cell_grant_granted_by ON cell_grant USING btree (granted_by) WHERE granted_by IS NOT NULL;
CREATE INDEX cell_grant_path ON cell_grant USING btree (principal, cell_path, cell_id) WHERE cell_path IS NOT NULL;
CREATE INDEX cell_grant_principal ON cell_grant USING btree (principal, cell_created_at, cell_id);
CREATE INDEX cell_item_child ON cell_item USING btree (child_id, created_at, parent_id, "position");
CREATE INDEX cell_live_changed ON cell USING btree (visibility, changed_at, id) WHERE deleted_at IS NULL;
CREATE INDEX cell_live_created ON cell USING btree (visibility, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX cell_live_kind_changed ON cell USING btree (visibility, kind, changed_at, id) WHERE deleted_at IS NULL;
CREATE INDEX cell_live_kind_created ON cell USING btree (visibility, kind, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX cell_live_own_changed ON cell USING btree (created_by, visibility, changed_at, id) WHERE deleted_at IS NULL;
CREATE INDEX cell_live_own_kind_changed ON cell USING btree (created_by, visibility, kind, changed_at, id) WHERE deleted_at IS NULL AND kind IS NOT NULL;
CREATE INDEX cell_live_own_kind_created ON cell USING btree (created_by, visibility, kind, created_at, id) WHERE deleted_at IS NULL AND kind IS NOT NULL;
CREATE INDEX cell_own_created ON cell USING btree (created_by, visibility, (deleted_at IS NULL), created_at, id);
CREATE UNIQUE INDEX cell_path ON cell USING btree (path) WHERE deleted_at IS NULL AND path IS NOT NULL AND path <> ''::text;
CREATE INDEX cell_updated_by ON cell USING btree (updated_by) WHERE updated_by IS NOT NULL;
CREATE INDEX idempotency_key_expires ON idempotency_key USING btree (expires_at);
CREATE INDEX invite_claimed_by ON invite USING btree (claimed_by);
CREATE INDEX invite_created ON invite USING btree (created_at, id);
CREATE UNIQUE INDEX invite_open_email ON invite USING btree (email_key) WHERE email_key IS NOT NULL AND claimed_at IS NULL;
CREATE UNIQUE INDEX invite_open_username ON invite USING btree (username) WHERE username IS NOT NULL AND claimed_at IS NULL;
CREATE INDEX limiter_charge_bucket ON limiter_charge USING btree (limiter, key, expires_at);
CREATE INDEX limiter_charge_expires ON limiter_charge USING btree (expires_at);
CREATE INDEX message_outbox_account ON message_outbox USING btree (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX message_outbox_created ON message_outbox USING btree (created_at, id);
CREATE INDEX message_outbox_due ON message_outbox USING btree (next_attempt_at) WHERE state = 'queued'::text;
CREATE INDEX message_outbox_invite ON message_outbox USING btree (invite_id) WHERE invite_id IS NOT NULL;
CREATE INDEX message_outbox_sealed ON message_outbox USING btree ("left"(link_sealed, 12)) WHERE link_sealed IS NOT NULL;
CREATE INDEX message_outbox_state ON message_outbox USING btree (state, created_at, id);
CREATE INDEX message_outbox_ticket ON message_outbox USING btree (ticket_id) WHERE ticket_id IS NOT NULL;
CREATE INDEX role_grant_actor ON role_grant USING btree (actor_id);
CREATE UNIQUE INDEX role_grant_live ON role_grant USING btree (actor_id, role, scope_kind, scope_id) NULLS NOT DISTINCT WHERE revoked_at IS NULL AND closed_at IS NULL;
CREATE INDEX role_grant_live_global ON role_grant USING btree (role) WHERE revoked_at IS NULL AND closed_at IS NULL AND scope_id IS NULL;
CREATE INDEX role_grant_live_holder ON role_grant USING btree (role, COALESCE(scope_id, '00000000-0000-0000-0000-000000000000'::uuid), COALESCE(scope_kind, ''::text), created_at, id) WHERE revoked_at IS NULL AND closed_at IS NULL AND role <> ''::text;
CREATE INDEX role_grant_live_scope ON role_grant USING btree (scope_kind, scope_id) WHERE revoked_at IS NULL AND closed_at IS NULL AND scope_id IS NOT NULL;
CREATE INDEX role_grant_live_scope_id ON role_grant USING btree (scope_id, actor_id) WHERE scope_id IS NOT NULL AND revoked_at IS NULL AND closed_at IS NULL;
CREATE INDEX role_grant_offer_from ON role_grant_offer USING btree (from_account_id, created_at, offer_id);
CREATE UNIQUE INDEX role_grant_offer_open ON role_grant_offer USING btree (to_account_id, to_actor_id, role, scope_kind, scope_id, from_actor_id) NULLS NOT DISTINCT WHERE accepted_at IS NULL AND declined_at IS NULL AND retracted_at IS NULL AND superseded_at IS NULL AND expired_at IS NULL AND role <> ''::text;
CREATE INDEX role_grant_offer_open_expires ON role_grant_offer USING btree (expires_at) WHERE accepted_at IS NULL AND declined_at IS NULL AND retracted_at IS NULL AND superseded_at IS NULL AND expired_at IS NULL AND expires_at > '-infinity'::timestamp with time zone;
CREATE INDEX role_grant_offer_open_from ON role_grant_offer USING btree (from_actor_id) WHERE accepted_at IS NULL AND declined_at IS NULL AND retracted_at IS NULL AND superseded_at IS NULL AND expired_at IS NULL AND from_actor_id <> '00000000-0000-0000-0000-000000000000'::uuid;
CREATE INDEX role_grant_offer_open_scope ON role_grant_offer USING btree (scope_kind, scope_id) WHERE accepted_at IS NULL AND declined_at IS NULL AND retracted_at IS NULL AND superseded_at IS NULL AND expired_at IS NULL AND scope_id IS NOT NULL;
CREATE INDEX role_grant_offer_open_to ON role_grant_offer USING btree (to_account_id, expires_at, offer_id) WHERE accepted_at IS NULL AND declined_at IS NULL AND retracted_at IS NULL AND superseded_at IS NULL AND expired_at IS NULL AND to_account_id <> '00000000-0000-0000-0000-000000000000'::uuid;
CREATE INDEX role_grant_offer_result ON role_grant_offer USING btree (resulting_role_grant_id) WHERE resulting_role_grant_id IS NOT NULL;
CREATE INDEX role_grant_offer_to ON role_grant_offer USING btree (to_account_id, created_at, offer_id);
CREATE INDEX role_grant_offer_to_actor ON role_grant_offer USING btree (to_actor_id) WHERE to_actor_id IS NOT NULL;
CREATE INDEX role_grant_source ON role_grant USING btree (source_offer_id) WHERE source_offer_id IS NOT NULL;
CREATE INDEX sign_in_flow_account ON sign_in_flow USING btree (account_id, created_at);
CREATE INDEX sign_in_flow_expires ON sign_in_flow USING btree (expires_at);
CREATE INDEX username_reservation_account ON username_reservation USING btree (account_id);

create or replace function audit_entries() returns TABLE(id uuid, seq bigint, written bigint, event_type text, outcome text, actor_id uuid, account_id uuid, target_actor_id uuid, target_account_id uuid, ip text, created_at timestamp with time zone, metadata jsonb, cell_ids uuid[])
language sql stable parallel unsafe
as $$
  select id, seq, written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
         created_at, metadata, cell_ids
    from audit_log
  union all
  select id, null, written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
         created_at, metadata, cell_ids
    from audit_inbox
$$;

create or replace function audit_insert(entries json) returns void
language plpgsql volatile parallel unsafe
as $$
begin
  insert into audit_inbox (event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip,
                           metadata, cell_ids)
  select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata,
         -- One expression: a subquery would make the audit statement of every mutation noticeably slower.
         nullif(
           array_remove(
             array[
               audit_named_cell(metadata, 'cell_id'), audit_named_cell(metadata, 'source_id'),
               audit_named_cell(metadata, 'parent_id'), audit_named_cell(metadata, 'child_id'),
               audit_named_cell(metadata, 'target_id'), audit_named_cell(metadata, 'new_id')
             ] || cell_ids,
             null
           ),
           '{}'
         )
    from rows from (
           json_to_recordset(entries) as (
             event_type text, outcome text, actor_id uuid, account_id uuid, target_actor_id uuid,
             target_account_id uuid, ip text, metadata jsonb, cell_ids uuid[])
         ) with ordinality
   order by ordinality;
end
$$;

create or replace function audit_named_cell(metadata jsonb, key text) returns uuid
language sql immutable parallel safe
as $$
  select case
    when metadata ->> key ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
    then (metadata ->> key)::uuid
  end
$$;

create or replace function audit_number(most integer DEFAULT 10000) returns integer
language plpgsql volatile parallel unsafe
as $$
declare
  last bigint;
  known text;
  present text;
  next bigint;
  numbered integer;
begin
  -- One session numbers at a time. Each statement below starts after the lock is held and so, at READ
  -- COMMITTED, sees what earlier sessions committed. Under a longer-lived snapshot it would not.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'audit_number() must run at READ COMMITTED' using errcode = 'invalid_transaction_state';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('cellkeep audit_number', 0));

  select seq, timeline into strict last, known from audit_position;
  present := server_timeline();
  if present <> known then
    last := last + 1048576;
  end if;
  for attempt in 1..2 loop
    begin
      with taken as (
        delete from audit_inbox
         where written = any (array(select written from audit_inbox order by written limit most))
        returning *
      ), moved as (
        insert into audit_log (id, seq, written, event_type, outcome, actor_id, account_id, target_actor_id,
                               target_account_id, ip, created_at, metadata, cell_ids)
        select id, last + row_number() over (order by written), written, event_type, outcome, actor_id, account_id,
               target_actor_id, target_account_id, ip, created_at, metadata, cell_ids
          from taken
        returning seq, cell_ids
      ), placed as (
        insert into audit_cell (cell_id, seq)
        select distinct cell_id, seq from moved cross join unnest(cell_ids) cell_id
      )
      select count(*) into numbered from moved;
      exit;
    exception when check_violation then
      -- No partition holds the numbers. Rows wait where none can be made.
      numbered := 0;
    end;
    exit when attempt = 2;
    begin
      next := last + 1;
      while next <= last + (select count(*) from (select from audit_inbox limit most) waiting) loop
        next := audit_partition(next);
      end loop;
    exception when query_canceled or others then
      exit;
    end;
  end loop;
  if numbered > 0 then
    update audit_position set seq = last + numbered, timeline = coalesce(present, known);
  end if;
  return numbered;
end
$$;

create or replace function audit_partition(at bigint, size bigint DEFAULT NULL::bigint) returns bigint
language plpgsql volatile parallel unsafe
set lock_timeout = '2s'
as $$
declare
  first bigint;
  above bigint;
  part text;
begin
  for attempt in 1..2 loop
    select upper into above from audit_partitions() where at >= lower and at < upper;
    if found then
      return above;
    end if;
    -- One session makes partitions at a time. As in audit_number(), later statements see what earlier sessions made.
    lock table only audit_log, only audit_cell in share update exclusive mode;
  end loop;
  size := coalesce(size, (select partition_rows from audit_position), 10000000);
  first := greatest(at / size * size, (select max(upper) from audit_partitions() where upper <= at));
  above := least(at / size * size + size, (select min(lower) from audit_partitions() where lower > at));
  foreach part in array array['audit_log', 'audit_cell'] loop
    execute format('create table %1$s_%2$s (like %1$s including all) with (autovacuum_vacuum_insert_scale_factor = 0.05)',
                   part, first);
    execute format('alter table %1$s attach partition %1$s_%2$s for values from (%2$s) to (%3$s)', part, first, above);
  end loop;
  update audit_position set partition_rows = size where partition_rows <> size;
  return above;
end
$$;

create or replace function audit_partitions() returns TABLE(lower bigint, upper bigint)
language sql stable parallel unsafe
as $$
  select substring(bound from 'FROM \(''(\d+)')::bigint, substring(bound from 'TO \(''(\d+)')::bigint
    from pg_inherits join pg_class c on c.oid = inhrelid
      cross join lateral pg_get_expr(c.relpartbound, c.oid) bound
   where inhparent = to_regclass('audit_log') and not inhdetachpending
$$;

create or replace function audit_waiting() returns boolean
language plpgsql stable parallel unsafe
set enable_bitmapscan = 'off'
set enable_seqscan = 'off'
as $$
begin
  return exists (select from audit_inbox where written > 0);
end
$$;

create or replace function audit_write(entries json) returns text
language plpgsql volatile parallel unsafe
set lock_timeout = '250ms'
as $$
declare
  entry json;
  place integer := -1;
  lost integer[] := '{}';
  cause text;
  -- True: don't wait again for each of the remaining rows.
  is_over boolean := false;
begin
  begin
    perform audit_insert(entries);
    return null;
  exception
    when lock_not_available or query_canceled then
      is_over := true;
      cause := sqlstate || ' ' || sqlerrm;
    when assert_failure or others then
      -- One bad row must not lose the others: try again row by row.
      null;
  end;
  for entry in select value from json_array_elements(entries) loop
    place := place + 1;
    if is_over then
      lost := lost || place;
      continue;
    end if;
    begin
      perform audit_insert(json_build_array(entry));
    exception when query_canceled or assert_failure or others then
      is_over := sqlstate in ('55P03', '57014');
      lost := lost || place;
      -- Messages of class 22 quote the refused value.
      cause := coalesce(cause, sqlstate || case when sqlstate like '22%' then '' else ' ' || sqlerrm end);
    end;
  end loop;
  return case when lost <> '{}' then json_build_object('lost', lost, 'cause', cause)::text end;
end
$$;

create or replace function audit_write_paired(entries json) returns text
language plpgsql volatile parallel unsafe
set lock_timeout = '250ms'
as $$
declare
  paired json;
  mended integer[];
  answer text;
begin
  begin
    select json_agg(
             case when doer.id is null and target.id is null then value
                  else (value::jsonb || jsonb_strip_nulls(jsonb_build_object(
                         'account_id', doer.account_id, 'target_account_id', target.account_id)))::json
             end order by place),
           array_agg((place - 1)::integer order by place) filter (
             where lower(value ->> 'account_id') <> doer.account_id::text
                or lower(value ->> 'target_account_id') <> target.account_id::text)
      into paired, mended
      from json_array_elements(entries) with ordinality as entry (value, place)
        left join lateral (
          select id, account_id from actor where id = audit_named_cell(value::jsonb, 'actor_id') offset 0
        ) doer on true
        left join lateral (
          select id, account_id from actor where id = audit_named_cell(value::jsonb, 'target_actor_id') offset 0
        ) target on true;
  exception when query_canceled or assert_failure or others then
    paired := entries;
    mended := null;
  end;
  answer := audit_write(coalesce(paired, entries));
  if mended is null then
    return answer;
  end if;
  return (coalesce(answer::jsonb, '{}') || jsonb_build_object('mended', mended))::text;
end
$$;

create or replace function iso_timestamp(at timestamp with time zone) returns text
language sql stable strict parallel safe
as $$ select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

create or replace function limiter_add(of_limiter text, of_key text, span interval, grain interval, moment timestamp with time zone) returns void
language plpgsql volatile parallel unsafe
as $$
begin
  update limiter_charge set charges = charges + 1
  where id = (
    select id from limiter_charge
    where limiter = of_limiter and key = of_key and slot is null and expires_at > moment
      and at >= moment - grain and grain > interval '0'
    order by at desc limit 1);
  if not found then
    insert into limiter_charge (limiter, key, at, expires_at)
    values (of_limiter, of_key, moment, moment + span + grain);
  end if;
end $$;

create or replace function limiter_take(of_limiter text, of_key text, most integer, span interval, grain interval, lease interval, as_slot uuid, moment timestamp with time zone DEFAULT NULL::timestamp with time zone) returns integer
language plpgsql volatile parallel unsafe
as $$
declare
  charged bigint;
  held bigint;
begin
  -- Statements after the lock see what its previous holder committed.
  perform pg_advisory_xact_lock(hashtext(of_limiter), hashtext(of_key));
  moment := coalesce(moment, date_trunc('milliseconds', clock_timestamp()));
  select coalesce(sum(charges) filter (where slot is null or at + lease <= moment), 0),
      count(*) filter (where slot is not null and at + lease > moment)
    into charged, held
    from limiter_charge where limiter = of_limiter and key = of_key and expires_at > moment;
  if charged + held < most then
    if as_slot is null then
      perform limiter_add(of_limiter, of_key, span, grain, moment);
    else
      insert into limiter_charge (limiter, key, at, slot, expires_at)
      values (of_limiter, of_key, moment, as_slot, moment + greatest(span, lease));
    end if;
    return null;
  end if;
  if charged < most then
    return 0;
  end if;
  -- The time until enough charges have expired.
  return (
    select greatest(1, ceil(extract(epoch from min(expires_at) - moment)))::integer
    from (
      select expires_at, charged - sum(charges) over (order by expires_at, id) as remaining
      from limiter_charge
      where limiter = of_limiter and key = of_key and expires_at > moment
        and (slot is null or at + lease <= moment)
    ) leaving
    where remaining + held < most);
end $$;

create or replace function server_timeline() returns text
language plpgsql volatile parallel unsafe
as $$
begin
  return left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
exception when others then
  return null;
end
$$;


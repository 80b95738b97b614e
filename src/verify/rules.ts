import { fold } from '../accounts/formats.ts'
import { isStoredHash } from '../auth/password.ts'
import { labelMax, summaryMax } from '../cells/data.ts'
import type { Findings, Rule } from './rule.ts'

/**
 * The rules that no constraint of the schema states; `schema-rules.ts` makes the others. Each is one condition over a
 * row `t`, so that a table is read once for all of them.
 */

const rules = (check: string, table: string, of: Findings): Rule[] =>
  Object.entries(of).map(([finding, [what, broken]]) => ({ check, table, finding, what, broken }))

const twice = (table: string, column: string, id: string): string =>
  `exists (select from ${table} o where o.${column} = t.${column} and o.${id} <> t.${id})`

const names = rules('V4', 'account', {
  username_form: [
    'have a username that no account may have',
    `t.username !~ '^[a-z][a-z0-9_-]{1,37}[a-z0-9]$'`,
  ],
  username_twice: ['share their username with another account', twice('account', 'username', 'id')],
  email_twice: ['share their e-mail with another account', twice('account', 'email_key', 'id')],
  email_key_wrong: [
    'have a search key that does not match their e-mail',
    {
      columns: ['email', 'email_key'],
      // A leading space marks an address that was already in use when addresses began to be folded.
      isBroken: ({ email = null, email_key }) =>
        email !== null && email_key?.startsWith(' ') === false && fold(email) !== email_key,
    },
  ],
})

const isActive =
  't.revoked_at is null and t.closed_at is null and (t.expires_at is null or t.expires_at > now())'
const otherScope = '(o.role, o.scope_kind, o.scope_id) is distinct from (t.role, t.scope_kind, t.scope_id)'

const grants = [
  ...rules('V6', 'role_grant', {
    builtin_scoped: [
      'hold keeper or admin within a scope',
      `t.role in ('keeper', 'admin') and t.scope_id is not null`,
    ],
    grant_scope_destroyed: [
      'are active in a scope that was destroyed',
      `${isActive} and exists (select from role_scope_destroyed d
         where (d.scope_kind, d.scope_id) = (t.scope_kind, t.scope_id))`,
    ],
    grant_source_differs: [
      'come from an offer of another role, to another account, or not accepted',
      `exists (select from role_grant_offer o join actor a on a.id = t.actor_id where o.offer_id = t.source_offer_id
         and (${otherScope} or o.accepted_at is null or o.to_account_id <> a.account_id))`,
    ],
  }),
  ...rules('V6', 'role_grant_offer', {
    offer_result_differs: [
      'led to a grant of another role, or to another account',
      `exists (select from role_grant o join actor a on a.id = o.actor_id where o.id = t.resulting_role_grant_id
         and (${otherScope} or a.account_id <> t.to_account_id))`,
    ],
  }),
]

const noCell = (column: string): string => `not exists (select from cell c where c.id = t.${column})`

const cells = [
  ...rules('V7', 'cell', {
    cell_text_limits: [
      'have a label or summary that is not text or is too long',
      `jsonb_typeof(t.data -> 'label') <> 'string' or char_length(t.data ->> 'label') > ${labelMax}
       or jsonb_typeof(t.data -> 'summary') <> 'string' or char_length(t.data ->> 'summary') > ${summaryMax}`,
    ],
    cell_version_wrong: [
      'have a version that does not match the time of their last change',
      '(t.version > 1) <> (t.updated_at is not null)',
    ],
  }),
  ...rules('V7', 'cell_field', {
    dangling_field: ['join a cell that does not exist', `${noCell('source_id')} or ${noCell('target_id')}`],
  }),
  ...rules('V7', 'cell_item', {
    dangling_item: ['join a cell that does not exist', `${noCell('parent_id')} or ${noCell('child_id')}`],
  }),
  ...rules('V7', 'cell_grant', {
    dangling_grant: ['share a cell that does not exist', noCell('cell_id')],
    owner_granted: [
      'share a cell with its owner',
      'exists (select from cell c where c.id = t.cell_id and c.created_by = t.actor_id)',
    ],
    grant_order_wrong: [
      'hold another creation time or path than their cell, so lists are in the wrong order',
      `exists (select from cell c where c.id = t.cell_id
        and (c.created_at <> t.cell_created_at or c.path is distinct from t.cell_path))`,
    ],
  }),
]

const namedKeys = ['cell_id', 'source_id', 'parent_id', 'child_id', 'target_id', 'new_id']
  .map((key) => `audit_named_cell(t.metadata, '${key}')`)
  .join(', ')
const otherAccount = (side: string): string =>
  `exists (select from actor a where a.id = t.${side}actor_id and a.account_id <> t.${side}account_id)`

/** What must hold for a row of the log with or without its number. */
const written: Findings = {
  audit_pair_mixed: ['name an actor of another account', `${otherAccount('')} or ${otherAccount('target_')}`],
  audit_cells_unnamed: [
    'name a cell that is not among their cells',
    `not (array_remove(array[${namedKeys}], null) <@ coalesce(t.cell_ids, '{}'))`,
  ],
}

const audit = [
  ...rules('V8', 'audit_inbox', written),
  ...rules('V8', 'audit_log', {
    ...written,
    audit_seq_twice: ['share their number with another row', twice('audit_log', 'seq', 'id')],
    audit_beyond_position: [
      'have a number above the highest one given: it would be given again',
      't.seq > (select seq from audit_position)',
    ],
    // Retention goes by time, numbers by visibility: the last removed and the first kept rows may overlap slightly.
    audit_removed_left: [
      'have a number that retention already removed, though they are newer',
      `t.seq <= (select removed_seq from audit_position) and exists (
         select from audit_log o where o.seq > (select removed_seq from audit_position)
           and o.created_at < t.created_at - interval '1 hour')`,
    ],
    audit_mapping_missing: [
      'are missing in the timeline of a cell',
      `exists (select from unnest(t.cell_ids) c (id) join cell on cell.id = c.id
         where not exists (select from audit_cell m where (m.cell_id, m.seq) = (c.id, t.seq)))`,
    ],
  }),
  ...rules('V8', 'audit_cell', {
    audit_mapping_extra: [
      'are in the timeline of a cell that their audit row does not name',
      'not exists (select from audit_log l where l.seq = t.seq and t.cell_id = any (l.cell_ids))',
    ],
  }),
]

const digest = (column: string): string => `t.${column} !~ '^[0-9a-f]{64}$'`
const ofDeleted = 'exists (select from account a where a.id = t.account_id and a.deleted_at is not null)'

const tokenIn = `regexp_matches(t.metadata::text, '"([A-Za-z0-9_-]{43})"', 'g') m (found)`

/** No row of the log holds a secret. */
const noToken: Findings = {
  cleartext_token: [
    'hold the secret of a token, a session or a link',
    `t.metadata::text ~ 'secret_svc_token_[A-Za-z0-9_-]{43}' or exists (select from ${tokenIn}
       where exists (select from auth_session where id = encode(sha256(found[1]::bytea), 'hex'))
         or exists (select from account_ticket where token_hash = encode(sha256(found[1]::bytea), 'hex')))`,
  ],
}
const credentials = [
  ...rules('V9', 'audit_inbox', noToken),
  ...rules('V9', 'audit_log', noToken),
  ...rules('V9', 'auth_session', { session_of_deleted: ['belong to a deleted account', ofDeleted] }),
  ...rules('V9', 'api_token', {
    token_hash_form: ['do not hold a hash of a secret', digest('token_hash')],
    token_of_deleted: ['belong to a deleted account', ofDeleted],
  }),
  ...rules('V9', 'account_ticket', {
    ticket_hash_form: ['do not hold a hash of a link', digest('token_hash')],
  }),
  ...rules('V9', 'account_recovery_code', {
    code_hash_form: ['do not hold a hash of a code', digest('code_hash')],
  }),
]

const passwords = rules('V10', 'account', {
  password_hash_unreadable: [
    'have a password hash that cannot be read, so nobody can sign in with a password',
    { columns: ['password_hash'], isBroken: ({ password_hash }) => !isStoredHash(password_hash ?? '') },
  ],
})

export const ownRules: readonly Rule[] = [
  ...names,
  ...grants,
  ...cells,
  ...audit,
  ...credentials,
  ...passwords,
]

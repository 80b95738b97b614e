import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { lockWithSession } from '../accounts/locks.ts'
import { requireFresh } from '../auth/fresh.ts'
import type { TokenScope } from '../auth/identity.ts'
import { randomToken, sha256Hex } from '../auth/secrets.ts'
import { ScopeInput, scopeLabel, storedScope } from '../auth/token-scope.ts'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import type { Fail, Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { issue } from '../wire/issues.ts'
import { Int } from '../wire/types.ts'
import { TokenName } from './tokens.ts'

const daysMax = 36_500

export const TokenInput = z.strictObject({
  name: TokenName.default('CLI token'),
  scope: ScopeInput,
  lifetime: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('eternal') }),
    z.strictObject({ kind: z.literal('ttl'), days: Int(1, daysMax) }),
  ]),
})

export const account_token_create = mutation({
  doc: 'Create an API token for scripts. Only this answer has its secret. The oldest tokens beyond the max number end.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'token_create',
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'account',
  input: TokenInput,
  output: z.object({
    ok: z.literal(true),
    token: z.string(),
    id: z.string(),
    name: z.string(),
    scope: z.string(),
    expires_at: z.string().nullable(),
  }),
  errors: ['unknown_method', 'account_vanished', 'authentication_required', 'fresh_authentication_required'],
  refine: (input, { app, fail }) => refuseUnknownMethods(input, app, fail),
  async handler(input, { app, account, credential, db, audit }) {
    await lockWithSession(db, account.id, credential.id)
    if (app.config.step_up === 'all' && input.scope.kind === 'full')
      await requireFresh(app, db.rows, { account, credential })
    const detail = { credential_type: credential.type }
    return {
      ok: true as const,
      ...(await makeToken(app, { db, audit }, account.id, input, { ...detail, strong: credential.strong })),
    }
  },
})

export function refuseUnknownMethods<I extends { scope: TokenScope }>(
  input: I,
  app: App,
  fail: Fail<'unknown_method'>,
): I {
  if (input.scope.kind !== 'methods') return input
  const issues = input.scope.methods.flatMap((method, index) =>
    app.actions.has(method)
      ? []
      : [issue(['scope', 'methods', index], 'invalid_value', 'There is no such method.')],
  )
  if (issues.length > 0) throw fail('unknown_method', { issues: issues.slice(0, 20) })
  return input
}

/** Makes the token and ends the oldest ones beyond the cap. The caller holds the account lock. */
export async function makeToken(
  app: App,
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  account_id: string,
  { name, scope, lifetime }: z.output<typeof TokenInput>,
  { credential_type, via, strong = false }: Detail & { strong?: boolean },
) {
  const token = `secret_svc_token_${randomToken()}`
  const id = `tok_${randomBytes(9).toString('base64url')}`
  const stored = storedScope(scope)
  const days = lifetime.kind === 'ttl' ? lifetime.days : null
  const { expires_at, evicted } = await insertToken(db, account_id, app.config.max_tokens, {
    id,
    name,
    token_hash: sha256Hex(token),
    scope: stored,
    days,
    strong,
  })
  const byOperator = via !== undefined
  audit(
    'token_create',
    { token_id: id, token_scope: scope.kind, expires_at, credential_type, ...(byOperator && { via }) },
    byOperator ? { target_account_id: account_id } : {},
  )
  for (const token_id of evicted)
    audit(
      'token_revoke',
      { token_id, cause: 'cap', ...(byOperator && { via }) },
      { target_account_id: account_id },
    )
  return { token, id, name, scope: scopeLabel(JSON.parse(stored)), expires_at }
}

type NewToken = {
  id: string
  name: string
  token_hash: string
  scope: string
  days: number | null
  strong: boolean
}

/** Inserts the token and evicts the oldest beyond the cap, never the new one. Expired tokens do not count. */
function insertToken(
  db: Queryable,
  account_id: string,
  cap: number | null,
  { id, name, token_hash, scope, days, strong }: NewToken,
): Promise<{ expires_at: string | null; evicted: string[] }> {
  return db.one<{ expires_at: string | null; evicted: string[] }>(sql`
    with evicted as (
      delete from api_token where id in (
        select id from api_token
        where account_id = ${account_id}::uuid and (expires_at is null or expires_at > statement_timestamp())
        order by created_at desc, id desc
        offset ${cap === null ? null : cap - 1} limit ${cap === null ? 0 : null}
      ) returning id
    ), made as (
      insert into api_token (id, account_id, name, token_hash, scope, created_at, expires_at, strong)
      values (${id}, ${account_id}::uuid, ${name}, ${token_hash}, ${scope}::jsonb, now(),
        now() + make_interval(secs => ${days}::float8 * 86400), ${strong})
      returning expires_at
    )
    select made.expires_at, array(select id from evicted order by id) as evicted from made`)
}

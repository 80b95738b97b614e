import { lockLiveAccount } from '../accounts/locks.ts'
import { account, operation, type Words } from '../core/operation.ts'
import { Uuid } from '../wire/types.ts'
import { makeToken, refuseUnknownMethods, TokenInput } from './account_token_create.ts'
import { scopeNamed } from './tokens.ts'

/** Like `account_token_create`; only the result has the secret. */
export const createToken = operation({
  doc: 'Create an API token for an account. Its secret cannot be shown again.',
  input: TokenInput.extend({ account_id: Uuid }),
  event: 'token_create',
  errors: ['account_not_found', 'unknown_method'],
  refine: (input, { app, fail }) => refuseUnknownMethods(input, app, fail),
  async handler({ account_id, ...input }, { app, db, audit, detail, fail }) {
    await lockLiveAccount(db, account_id, fail)
    return await makeToken(app, { db, audit }, account_id, input, detail)
  },
  command: {
    name: 'token create',
    args: {
      account_id: account,
      name: '--name NAME',
      scope: { usage: '--scope SCOPE', parse: toScope },
      lifetime: { usage: '(--days N | --eternal)', parse: toLifetime },
    },
    details:
      'SCOPE is full, read_only, or the methods that the token may call, such as cell_get,cell_list. A script sends\nthe secret as `Authorization: Bearer …`. It acts for the account, so give it the narrowest scope it needs.',
    phrase: ({ token, id, name, scope, expires_at }) => ({
      secret: token,
      token: id,
      name,
      scope,
      expires: expires_at ?? 'never',
    }),
  },
})

function toScope({ '--scope': scope }: Words) {
  if (typeof scope !== 'string') throw new TypeError('Name its --scope.')
  return scopeNamed(scope)
}

function toLifetime({ '--days': days, '--eternal': eternal }: Words) {
  if ((days === undefined) === (eternal === undefined))
    throw new TypeError('Give either --days or --eternal.')
  return days === undefined ? { kind: 'eternal' } : { kind: 'ttl', days: Number(days) }
}

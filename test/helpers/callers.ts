import type { Actions } from '../../src/actions.ts'
import { sha256Hex } from '../../src/auth/secrets.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'

type TokenInput = Parameters<Client['account_token_create']>[0]

export const eternal = { kind: 'eternal' } as const

/** A client whose requests carry these headers. */
export const clientWith = ({ url }: Pick<TestService, 'url'>, headers: Record<string, string>): Client =>
  createClient<Actions>({ url, headers, jar: true })

export const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

/** A new API token of the account, its header, and a client that uses it. */
export async function tokenOf(
  test: Pick<TestService, 'url'>,
  account: TestAccount,
  scope: TokenInput['scope'] = { kind: 'full' },
) {
  const made = await account.client.account_token_create({ scope, lifetime: eternal })
  const headers = bearer(made.token)
  return { ...made, headers, client: clientWith(test, headers) }
}

/** Inserts tokens by SQL with an age and a lifetime as intervals; null: the token never expires. */
export async function plantTokens(
  { service }: Pick<TestService, 'service'>,
  { id }: TestAccount,
  ages: string[],
  lives: (string | null)[] = [],
): Promise<string[]> {
  const ids = ages.map((_, i) => `tok_${sha256Hex(`${id} ${i}`).slice(0, 12)}`)
  await service.app.db.run(sql`
    insert into api_token (id, account_id, name, token_hash, scope, created_at, expires_at)
    select one, ${id}::uuid, 'planted', 'hash of ' || one, '{"version":1,"kind":"full"}', now() - age,
      now() - age + life
    from unnest(${ids}::text[], ${ages}::interval[], ${ages.map((_, i) => lives[i] ?? null)}::interval[])
      as _ (one, age, life)`)
  return ids
}

/**
 * The cookie of a live session with a wrong signature: code that accepts it does not check signatures. The first
 * letter changes, since the last one has bits that are not decoded.
 */
export function forgedCookie({ cookie }: Pick<TestAccount, 'cookie'>): string {
  const at = cookie.lastIndexOf('.') + 1
  return `${cookie.slice(0, at)}${cookie[at] === 'A' ? 'B' : 'A'}${cookie.slice(at + 1)}`
}

/** The header of a service's daemon token. */
export const daemonHeaders = ({ daemonToken }: Pick<TestService, 'daemonToken'>) => ({
  'x-daemon-token': daemonToken.current,
})

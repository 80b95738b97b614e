import { z } from 'zod'
import { activeGrants } from '../auth/active-grant.ts'
import { secondFactorActive } from '../auth/ways-in.ts'
import { query } from '../core/action.ts'
import type { App } from '../core/app.ts'
import { operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { pendingOffers } from '../offers/offers.ts'
import { type AdminAccount, adminAccountColumns } from './accounts.ts'
import { AccountEntry, accountColumns } from './view.ts'

export const admin_account_list = query({
  doc: 'All accounts, oldest first, each with its actors, their active grants and its pending offers.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({ include_deleted: z.boolean().nullish(), ...pageInput() }),
  output: z.object({
    accounts: z.array(AccountEntry),
    grantable_roles: z.array(z.string()),
    next_cursor: z.string().nullable(),
  }),
  refine(input, { app, actor }) {
    const include_deleted = input.include_deleted ?? false
    return {
      include_deleted,
      page: openPage(app, 'admin_account_list', { actor: actor.id, include_deleted }, input),
    }
  },
  async handler(input, { app, db }) {
    const { accounts, next_cursor } = await readAccounts(app, db, input)
    return { accounts, grantable_roles: [...app.registry.grantable], next_cursor }
  },
})

export const listAccounts = operation({
  doc: 'List all accounts, oldest first, with the roles of their actors. --deleted adds deleted accounts.',
  input: z.strictObject({ include_deleted: z.boolean().default(false), ...pageInput() }),
  handler({ include_deleted, ...wanted }, { app }) {
    const page = openPage(app, 'admin_account_list', { actor: null, include_deleted }, wanted)
    return readAccounts(app, app.db, { include_deleted, page })
  },
  command: {
    name: 'account list',
    args: { include_deleted: '--deleted' },
    table: { columns: accountColumns, none: 'There is no account yet.' },
  },
})

/** One page of accounts, oldest first. */
async function readAccounts(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { include_deleted, page }: { include_deleted: boolean; page: Page },
): Promise<{ accounts: AccountEntry[]; next_cursor: string | null }> {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'uuid' })
  const found = await db.rows<AccountRow>(
    accountEntries(sql`
      where ${include_deleted ? sql`true` : sql`deleted_at is null`} and ${beyond} ${inOrder} ${limited}`),
  )
  const { rows, next_cursor } = closePage(app, page, found, (row) => [row.created_at, row.id])
  return { accounts: rows.map(toEntry), next_cursor }
}

export type AccountRow = z.output<typeof AdminAccount> & {
  actors: AccountEntry['actors']
  pending_offers: AccountEntry['pending_offers']
  sign_in: AccountEntry['sign_in']
}

/**
 * Accounts with everything an admin sees of them, for the accounts that `which` (where, order, limit) picks.
 * A deleted account shows the actors that were deleted together with it.
 */
export const accountEntries = (which: Sql): Sql => sql`
  with picked as (select ${adminAccountColumns} from account ${which})
  select picked.*, coalesce((
    select json_agg(json_build_object('id', actor.id, 'name', actor.name, 'role_grants', ${activeGrants})
      order by actor.created_at, actor.id)
    from actor where actor.account_id = picked.id
      and (actor.deleted_at is null or (picked.deleted_at is not null and actor.deleted_with_account))
  ), '[]'::json) as actors, ${pendingOffers(sql`picked.id`)} as pending_offers,
    json_build_object(
      'password', (select password_hash <> '*' from account where id = picked.id),
      'second_factor', ${secondFactorActive(sql`picked.id`)},
      'passkeys', (select count(*) from account_passkey where account_id = picked.id),
      'links', array(select provider from account_link where account_id = picked.id order by provider)
    ) as sign_in
  from picked order by picked.created_at, picked.id`

export function toEntry({ actors, pending_offers, sign_in, ...account }: AccountRow): AccountEntry {
  const [first] = actors
  return {
    account,
    actors,
    actor: first ? { id: first.id, name: first.name } : null,
    role_grants: actors.flatMap((actor) => actor.role_grants).sort(byAge),
    pending_offers,
    sign_in,
  }
}

const byAge = (a: { created_at: string; id: string }, b: { created_at: string; id: string }): number =>
  a.created_at === b.created_at ? (a.id < b.id ? -1 : 1) : a.created_at < b.created_at ? -1 : 1

import { z } from 'zod'
import { activeGrants } from '../../auth/active-grant.ts'
import { secondFactorActive } from '../../auth/ways-in.ts'
import type { App } from '../../core/app.ts'
import { query } from '../../core/declare.ts'
import { operation } from '../../core/operation.ts'
import { closePage, closeWalk, keyset, openPage, type Page, pageInput } from '../../core/page.ts'
import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { pendingOffers } from '../../offers/offers.ts'
import { RoleName } from '../../roles/scope.ts'
import { Trimmed } from '../../wire/types.ts'
import { type AdminAccount, adminAccountColumns } from '../accounts.ts'
import { type AccountFilter, type Found, foundAccounts, isShown, placeOf } from './search.ts'
import { AccountEntry, accountColumns } from './view.ts'

/** A prefix of a username or an e-mail. */
const Query = Trimmed(254)

export const admin_account_list = query({
  doc: 'All accounts, oldest first, with actors, active grants and pending offers. With `query` or `role`, only those that match; a page may then be short although another follows.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({
    include_deleted: z.boolean().nullish(),
    query: Query.nullish().describe('The beginning of a username or an e-mail; sorts by it.'),
    role: RoleName.nullish().describe(
      'Held by one of its actors; without `query` sorts by scope and age of the grant.',
    ),
    ...pageInput(),
  }),
  output: z.object({
    accounts: z.array(AccountEntry),
    grantable_roles: z.array(z.string()),
    next_cursor: z.string().nullable(),
  }),
  refine: (input, { app, actor }) => openSearch(app, actor.id, input),
  async handler(input, { app, db }) {
    const { accounts, next_cursor } = await readAccounts(app, db, input)
    return { accounts, grantable_roles: [...app.registry.grantable], next_cursor }
  },
})

export const listAccounts = operation({
  doc: 'List accounts, oldest first, with the roles of their actors.',
  input: z.strictObject({
    include_deleted: z.boolean().default(false),
    query: Query.optional(),
    role: RoleName.optional(),
    ...pageInput(),
  }),
  handler: (input, { app }) => readAccounts(app, app.db, openSearch(app, null, input)),
  command: {
    name: 'account list',
    args: { include_deleted: '--deleted', query: '--query TEXT', role: '--role ROLE' },
    details: 'Lists all accounts but deleted ones, which --deleted adds; --query and --role search.',
    table: { columns: accountColumns, none: 'No account was found.' },
  },
})

type Search = AccountFilter & { page: Page }
type Asked = { [K in keyof AccountFilter]?: AccountFilter[K] | null | undefined }

function openSearch(app: App, actor: string | null, input: Asked & Parameters<typeof openPage>[3]): Search {
  const { include_deleted, query, role } = input
  const filter = {
    include_deleted: include_deleted ?? false,
    query: query ?? undefined,
    role: role ?? undefined,
  }
  return { ...filter, page: openPage(app, 'admin_account_list', { actor, ...filter }, input) }
}

async function readAccounts(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { page, ...filter }: Search,
): Promise<{ accounts: AccountEntry[]; next_cursor: string | null }> {
  const isSearch = filter.query !== undefined || filter.role !== undefined
  const { rows, next_cursor } = await (isSearch ? searched : oldest)(app, db, filter, page)
  return { accounts: rows.map(toEntry), next_cursor }
}

type Read = (
  app: App,
  db: Pick<Queryable, 'rows'>,
  filter: AccountFilter,
  page: Page,
) => Promise<{ rows: AccountRow[]; next_cursor: string | null }>

const oldest: Read = async (app, db, { include_deleted }, page) => {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'uuid' })
  const found = await db.rows<AccountRow>(
    accountEntries(sql`
      select ${adminAccountColumns} from account
      where ${include_deleted ? sql`true` : sql`deleted_at is null`} and ${beyond} ${inOrder} ${limited}`),
  )
  return closePage(app, page, found, (row) => [row.created_at, row.id])
}

const searched: Read = async (app, db, filter, page) => {
  const walked = await db.rows<AccountRow & { found: Found }>(
    accountEntries(foundAccounts(filter, page), sql`(picked.found ->> 'nth')::int`),
  )
  const found = walked.map(({ found, ...row }) => ({ ...found, row }))
  const { rows, next_cursor } = closeWalk(app, page, found, (one) => placeOf(filter, one))
  return { rows: rows.map(({ row }) => row), next_cursor }
}

export type AccountRow = z.output<typeof AdminAccount> &
  Pick<AccountEntry, 'actors' | 'pending_offers' | 'sign_in'> & { has_password: boolean }

/** Accounts with everything an admin sees of them; `picked` selects at least their columns. */
export const accountEntries = (picked: Sql, order: Sql = sql`picked.created_at, picked.id`): Sql => sql`
  with picked as (${picked})
  select picked.*, coalesce((
    select json_agg(json_build_object('id', actor.id, 'name', actor.name, 'role_grants', ${activeGrants})
      order by actor.created_at, actor.id)
    from actor where actor.account_id = picked.id and ${isShown(sql`picked`)}
  ), '[]'::json) as actors, ${pendingOffers(sql`picked.id`)} as pending_offers,
    json_build_object(
      'password', picked.has_password,
      'second_factor', ${secondFactorActive(sql`picked.id`)},
      'passkeys', (select count(*) from account_passkey where account_id = picked.id),
      'links', array(select provider from account_link where account_id = picked.id order by provider)
    ) as sign_in
  from picked order by ${order}`

export function toEntry(row: AccountRow): AccountEntry {
  const { actors, pending_offers, sign_in, has_password: _, ...account } = row
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

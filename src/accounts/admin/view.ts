import { z } from 'zod'
import type { Columns, Phrase } from '../../core/operation.ts'
import { PendingOffer } from '../../offers/offers.ts'
import { RoleGrantSummary } from '../../roles/grants.ts'
import { Uuid } from '../../wire/types.ts'
import { AdminAccount } from '../accounts.ts'

/** An account as admins see it, with its actors, their grants and its pending offers. */
export const AccountEntry = z.object({
  account: AdminAccount,
  actors: z.array(z.object({ id: Uuid, name: z.string(), role_grants: z.array(RoleGrantSummary) })),
  actor: z.object({ id: Uuid, name: z.string() }).nullable(),
  role_grants: z.array(RoleGrantSummary),
  pending_offers: z.array(PendingOffer),
  /** The ways to sign in to it; `links` names providers. */
  sign_in: z.object({
    password: z.boolean(),
    second_factor: z.boolean(),
    passkeys: z.int(),
    links: z.array(z.string()),
  }),
})
export type AccountEntry = z.output<typeof AccountEntry>

type Grant = AccountEntry['role_grants'][number]

/** Such as `admin`, or `teacher at classroom 2f… until 2030-…`. */
const grantText = ({ role, scope_kind, scope_id, expires_at }: Grant): string =>
  [role, scope_id && `at ${scope_kind} ${scope_id}`, expires_at && `until ${expires_at}`]
    .filter(Boolean)
    .join(' ')

/** Each role once. */
export const rolesOf = (grants: readonly Grant[]): string =>
  [...new Set(grants.map(({ role }) => role))].join(', ')

const stateOf = ({ account }: AccountEntry): string =>
  account.deleted_at === null ? 'active' : `deleted ${account.deleted_at}`

export const accountColumns: Columns<AccountEntry> = {
  ACCOUNT: ({ account }) => account.id,
  USERNAME: ({ account }) => account.username,
  EMAIL: ({ account }) => account.email,
  CREATED: ({ account }) => account.created_at,
  STATE: stateOf,
  ROLES: ({ role_grants }) => rolesOf(role_grants),
}

/** Everything an admin sees of an account, as text. */
export function describeAccount(entry: AccountEntry): Phrase {
  const { account, actors, pending_offers } = entry
  const verified = account.email_verified ? 'verified' : 'not verified'
  const head = {
    account: account.id,
    username: account.username,
    email: account.email === null ? null : `${account.email} (${verified})`,
    created: account.created_at,
    state: stateOf(entry),
  }
  const lines = actors.flatMap(({ id, name, role_grants }) => [
    `actor ${id}  ${name}`,
    ...role_grants.map((grant) => `  ${grantText(grant)}  (grant ${grant.id})`),
  ])
  const offers = pending_offers.map(
    ({ role, from_username, expires_at }) =>
      `offered ${role} by ${from_username ?? 'a purged account'} until ${expires_at}`,
  )
  return [head, '', ...lines, ...offers]
}

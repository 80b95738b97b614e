import type { RoleGrant } from '../auth/identity.ts'
import type { Offer } from '../wire/offer.ts'

/** The hooks that a consumer can implement. */

/** The free-form content of a cell. */
export type CellData = { [key: string]: unknown }

/** The hooks for cells. They may run twice: a deadlock repeats the call. */
export type CellHooks = {
  /** Runs inside the transaction, for admins too; any result but `true` refuses. */
  authorizeCreate?:
    | ((
        caller: { actor_id: string; account_id: string; is_admin: boolean },
        input: {
          operation: 'create' | 'clone'
          kind: string | null
          visibility: string
          path: string | null
          data: CellData
          source_id: string | null
        },
      ) => boolean | Promise<boolean>)
    | undefined
  /** Returns the data to store, or throws `CellDataIssues`. */
  validateData?: ((kind: string | null, data: CellData) => CellData | Promise<CellData>) | undefined
}

/** Where the data is wrong, and why. The issues of a zod error have this form. */
export type DataIssue = { readonly path: readonly PropertyKey[]; readonly message: string }

/** What `validateData` throws: where the data is wrong, and why; the caller sees the messages. */
export class CellDataIssues extends Error {
  readonly issues: readonly DataIssue[]
  constructor(issues: readonly DataIssue[]) {
    super('The data hook refused the data.')
    this.issues = issues
  }
}

/** The input of a consumer's `authorize_offer`. */
export type OfferQuestion = {
  /** Asked twice: when the offer is made, and again when it is accepted. */
  phase: 'create' | 'accept'
  /** Who offers, with the actor's current active grants. */
  grantor: Grantor
} & Pick<
  Offer,
  'to_account_id' | 'to_actor_id' | 'role' | 'scope_kind' | 'scope_id' | 'message' | 'grant_expires_at'
>

export type Grantor = { actor_id: string; account_id: string; role_grants: readonly RoleGrant[] }

/**
 * Replaces the default rule, by which actors may offer the roles they hold. Any result but `true` refuses. A deadlock
 * repeats the call.
 */
export type AuthorizeOffer = (offer: OfferQuestion) => boolean | Promise<boolean>

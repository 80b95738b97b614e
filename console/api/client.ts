import type { Actions } from '../../src/actions.ts'
import { type CellkeepError, type Client, createClient, link } from '../../src/client/client.ts'
import type { InputOf, OutputOf } from '../../src/core/method.ts'
import { setServerNow } from '../lib/time.ts'
import { server } from './server.ts'

const timed: typeof fetch = async (...request) => {
  const answer = await fetch(...request)
  setServerNow(answer.headers.get('date'))
  return answer
}

export const client: Client = createClient({
  url: location.origin,
  rpcPath: server.paths.rpc,
  accountPath: server.paths.account,
  fetch: timed,
})

export type Name = keyof Actions & string
export type Input<M extends Name> = Omit<InputOf<Actions[M]>, 'acting'>
export type Output<M extends Name> = OutputOf<Actions[M]>
export type Refusal = CellkeepError

type Actorless = { [M in Name]: Actions[M]['auth']['actor'] extends 'none' ? M : never }[Name]
/** Methods of the whole account, which take no `acting`; the type keeps the list complete. */
const actorless: Readonly<Record<Actorless, true>> = {
  account_email_change: true,
  account_email_verify_send: true,
  account_link_remove: true,
  account_passkey_register_begin: true,
  account_passkey_register_finish: true,
  account_passkey_remove: true,
  account_passkey_rename: true,
  account_recovery_codes_create: true,
  account_session_list: true,
  account_session_revoke: true,
  account_session_revoke_all: true,
  account_sign_in_get: true,
  account_token_create: true,
  account_token_list: true,
  account_token_revoke: true,
  account_totp_confirm: true,
  account_totp_enrol: true,
  account_totp_remove: true,
  account_username_change: true,
  account_verify: true,
  actor_lookup: true,
  actor_search: true,
  registry_list: true,
  'rpc.discover': true,
}

/** Calls a method by its name, as the given actor, if any. */
export const call = <M extends Name>(
  method: M,
  input: Input<M>,
  acting: string | null,
  signal?: AbortSignal,
): Promise<Output<M>> => {
  const run = client[method] as (input: unknown, options: { signal?: AbortSignal }) => Promise<Output<M>>
  return run(acting && !(method in actorless) ? { ...input, acting } : input, signal ? { signal } : {})
}

/** A GET of an account route with a query, which the typed routes do not have. */
export async function getAccount(path: string): Promise<{ status: number; reply: unknown }> {
  const { status, reply } = await client[link].send('GET', `${server.paths.account}${path}`)
  return { status, reply }
}

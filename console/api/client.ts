import type { Actions } from '../../src/actions.ts'
import { type CellkeepError, type Client, createClient, link } from '../../src/client/client.ts'
import type { InputOf, OutputOf } from '../../src/core/method.ts'
import { server } from './server.ts'

export const client: Client = createClient({
  url: location.origin,
  rpcPath: server.paths.rpc,
  accountPath: server.paths.account,
})

export type Name = keyof Actions & string
export type Input<M extends Name> = Omit<InputOf<Actions[M]>, 'acting'>
export type Output<M extends Name> = OutputOf<Actions[M]>
export type Refusal = CellkeepError

/** Calls a method by its name, as the actor named, if any. */
export const call = <M extends Name>(
  method: M,
  input: Input<M>,
  acting: string | null,
  signal?: AbortSignal,
): Promise<Output<M>> => {
  const run = client[method] as (input: unknown, options: { signal?: AbortSignal }) => Promise<Output<M>>
  return run(acting ? { ...input, acting } : input, signal ? { signal } : {})
}

/** A GET of an account route with a query, which the typed routes do not have. */
export async function getAccount(path: string): Promise<{ status: number; reply: unknown }> {
  const { status, reply } = await client[link].send('GET', `${server.paths.account}${path}`)
  return { status, reply }
}

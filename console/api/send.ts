import { CellkeepError } from '../../src/client/client.ts'
import { call, type Input, type Name, type Output } from './client.ts'
import { noticeEnd, spoil } from './query.ts'
import { useRun } from './run.ts'
import { acting } from './session.ts'
import { proveAgain } from './step-up.ts'

/** Where a call needs a fresh proof of who makes it, asks for one and makes the call again. */
export async function freshly<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    const isStale = error instanceof CellkeepError && error.reason === 'fresh_authentication_required'
    if (isStale && (await proveAgain(error.data.methods as string[]))) return await make()
    throw error
  }
}

/** Calls a method that changes something, as the acting actor or another of the account, and reads anew what it `spoils`. */
export const useSend = <M extends Name>(
  method: M,
  { spoils = [], as }: { spoils?: readonly Name[]; as?: string | undefined } = {},
) =>
  useRun((input: Input<M>): Promise<Output<M>> => freshly(() => call(method, input, as ?? acting.peek())), {
    done: () => spoil(...spoils),
    refused: noticeEnd,
  })

import { CellkeepError } from '../../src/client/client.ts'
import { explain } from '../copy/errors.ts'
import { toast } from '../ui/toast.tsx'
import { call, type Input, type Name, type Output } from './client.ts'
import { noticeEnd, spoil } from './query.ts'
import { useRun } from './run.ts'
import { acting, sameAccount } from './session.ts'
import { proveAgain } from './step-up.ts'

/** If a call needs a fresh proof of identity, asks for one and repeats the call. */
export async function freshly<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    const isStale = error instanceof CellkeepError && error.reason === 'fresh_authentication_required'
    if (isStale && (await proveAgain(error.data.methods as string[]))) return await make()
    throw error
  }
}

/** Undoes a change from a toast: the component that made it may be gone, so a refusal is shown in another toast. */
export async function undo(make: () => Promise<unknown>): Promise<void> {
  const isOwn = sameAccount()
  try {
    await freshly(make)
  } catch (error) {
    if (!(error instanceof CellkeepError)) throw error
    if (!isOwn()) return
    noticeEnd(error)
    toast(explain(error))
  }
}

type Options<M extends Name> = {
  spoils?: readonly Name[]
  as?: string | undefined
  done?: (result: Output<M>, input: Input<M>) => void
}

/** Refused for a state that the page does not show: a right that has ended, a thing that is gone or has changed. */
const othersMayHaveChanged = [403, 404, 409]

/**
 * Calls a method that changes something, as the acting actor or another one of the account, and then reads again what
 * it `spoils`.
 */
export const useSend = <M extends Name>(method: M, { spoils = [], as, done }: Options<M> = {}) =>
  useRun((input: Input<M>): Promise<Output<M>> => freshly(() => call(method, input, as ?? acting.peek())), {
    done: (result, input) => {
      void spoil(...spoils)
      done?.(result, input)
    },
    refused: (error) => {
      noticeEnd(error)
      return othersMayHaveChanged.includes(error.status) ? spoil(...spoils) : undefined
    },
  })

import { call, type Input, type Name, type Output } from './client.ts'
import { noticeEnd, spoil } from './query.ts'
import { useRun } from './run.ts'
import { acting } from './session.ts'

/** Calls a method that changes something, and reads anew what it `spoils`. */
export const useSend = <M extends Name>(method: M, { spoils = [] }: { spoils?: readonly Name[] } = {}) =>
  useRun((input: Input<M>): Promise<Output<M>> => call(method, input, acting.peek()), {
    done: () => spoil(...spoils),
    refused: noticeEnd,
  })

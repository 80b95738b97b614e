import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { CellkeepError } from '../../src/client/client.ts'
import { explain } from '../copy/errors.ts'
import { toast } from '../ui/toast.tsx'
import { useWait } from '../ui/wait.ts'
import type { Refusal } from './client.ts'
import { sameAccount } from './session.ts'

/** A running change: what a form needs to show its button and its error. Never repeated automatically. */
export type Sending<I, O> = {
  /**
   * Undefined if it was refused, as `error` says, or if the component that sent it is gone: then there is nothing to
   * close.
   */
  send(input: I): Promise<O | undefined>
  isBusy: boolean
  error: Refusal | null
  /** Seconds until another attempt is allowed; 0: now. */
  wait: number
  reset(): void
}

/**
 * `done`: effects of an answer wherever the person is by then, such as a toast; effects on this component belong after
 * `send`. `refused` returns what reads again, if anything does.
 */
type Options<I, O> = { done?: (result: O, input: I) => void; refused?: (error: Refusal) => unknown }

/** After this, what was read again is on screen. */
const drawnMs = 1_000

/** For any function that changes something, such as a route. */
export function useRun<I, O>(
  run: (input: I) => Promise<O>,
  { done, refused }: Options<I, O> = {},
): Sending<I, O> {
  const isBusy = useSignal(false)
  const error = useSignal<Refusal | null>(null)
  const wait = useWait(error.value)
  const isHere = useRef(true)
  const untold = useRef<(() => unknown) | undefined>(undefined)
  useEffect(
    () => () => {
      isHere.current = false
      untold.current?.()
    },
    [],
  )
  return {
    isBusy: isBusy.value,
    error: error.value,
    wait,
    reset: () => {
      error.value = null
    },
    async send(input) {
      if (isBusy.peek()) return undefined
      isBusy.value = true
      error.value = null
      const isOwn = sameAccount()
      try {
        const result = await run(input)
        if (!isOwn()) return undefined
        done?.(result, input)
        return isHere.current ? result : undefined
      } catch (thrown) {
        if (!(thrown instanceof CellkeepError)) throw thrown
        if (!isOwn()) return undefined
        const reread = refused?.(thrown)
        // A person who has closed the dialog takes the change for done, so say that it was refused; also if the row
        // that shows why goes as its list is read again.
        if (!isHere.current) tell(thrown)
        else if (reread instanceof Promise) {
          const say = (): unknown => isOwn() && tell(thrown)
          untold.current = say
          const drawn = (): unknown => untold.current === say && (untold.current = undefined)
          void reread.then(() => setTimeout(drawn, drawnMs))
        }
        error.value = thrown
        return undefined
      } finally {
        isBusy.value = false
      }
    },
  }
}

const told = new WeakSet<Refusal>()
function tell(error: Refusal): void {
  if (!told.has(error)) toast(explain(error))
  told.add(error)
}

/** Says why a change was refused if there is no place for it, as in a row of a list. */
export const useTold = (error: Refusal | null): void =>
  useEffect(() => {
    if (error) tell(error)
  }, [error])

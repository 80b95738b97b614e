import { effect, signal } from '@preact/signals'
import { isEnded, signedIn } from './session.ts'

/** A call that waits until its caller has proven again, in one of these ways, who they are; `settle(false)`: they would not. */
export const stepUp = signal<{ methods: readonly string[]; settle(isProven: boolean): void } | null>(null)

/** Whoever signs in next is not asked for what somebody else has begun. */
effect(() => {
  if (isEnded.value || !signedIn.value) stepUp.peek()?.settle(false)
})

/** Opens the dialog; resolves to whether the call may be repeated. */
export const proveAgain = (methods: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    stepUp.value = {
      methods,
      settle: (isProven) => {
        stepUp.value = null
        resolve(isProven)
      },
    }
  })

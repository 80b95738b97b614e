import { effect, signal } from '@preact/signals'
import { isEnded, signedIn } from './session.ts'

/**
 * A call that waits until its caller has proven their identity again in one of these ways; `settle(false)`: they
 * declined.
 */
export const stepUp = signal<{ methods: readonly string[]; settle(isProven: boolean): void } | null>(null)

/** The next person to sign in is not asked for what somebody else began. */
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

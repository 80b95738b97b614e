import { signal } from '@preact/signals'

/** A call that waits until its caller has proven again who they are; `settle(false)`: they would not. */
export const stepUp = signal<{ settle(isProven: boolean): void } | null>(null)

/** Opens the dialog; resolves to whether the call may be repeated. */
export const proveAgain = (): Promise<boolean> =>
  new Promise((resolve) => {
    stepUp.value = {
      settle: (isProven) => {
        stepUp.value = null
        resolve(isProven)
      },
    }
  })

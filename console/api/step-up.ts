import { signal } from '@preact/signals'

/** A call that waits until its caller has proven again, in one of these ways, who they are; `settle(false)`: they would not. */
export const stepUp = signal<{ methods: readonly string[]; settle(isProven: boolean): void } | null>(null)

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

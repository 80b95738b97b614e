/**
 * In an npm script each signal arrives twice: the terminal or supervisor sends it to every process, and npm forwards
 * its own. Only a signal that comes later than this is a second one.
 */
const relayMs = process.env.npm_lifecycle_script?.includes('cellkeep') ? 1000 : 0

/**
 * Calls `first` with the exit code of the first signal. A second one ends the process at once, with `second` if given,
 * else with its own code. Returns a function that removes the listeners.
 */
export function onSignal(first: (code: number) => void, second?: number): () => void {
  const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
  let firstAt: number | undefined
  const hooks = Object.entries(signals).map(([signal, code]) => {
    const end = (): void => {
      if (firstAt === undefined) {
        firstAt = performance.now()
        first(code)
      } else if (performance.now() - firstAt >= relayMs) process.exit(second ?? code)
    }
    process.on(signal, end)
    return () => process.off(signal, end)
  })
  return () => {
    for (const unhook of hooks) unhook()
  }
}

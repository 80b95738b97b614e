import { ConfigError } from '../../src/config/config.ts'

/** The problems of the configuration that `act` reads; empty if there are none. */
export function problemsOf(act: () => unknown): readonly string[] {
  try {
    act()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

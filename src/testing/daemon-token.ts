import type { DaemonTokenState } from '../auth/daemon-token.ts'
import { randomToken } from '../auth/secrets.ts'

/** Makes daemon tokens for tests and holds the state that validates them. */
export type TestDaemonToken = DaemonTokenState & {
  /** Makes a new current token. The previous one stays valid, older ones do not. */
  rotate(): string
}

export function testDaemonToken(): TestDaemonToken {
  const state: TestDaemonToken = {
    current: randomToken(),
    rotate: () => {
      state.previous = state.current
      state.current = randomToken()
      return state.current
    },
  }
  return state
}

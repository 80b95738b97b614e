import type { DaemonTokenState } from '../auth/daemon-token.ts'
import { randomToken } from '../auth/secrets.ts'

/** The state that validates daemon tokens, and the one producer of them. */
export type TestDaemonToken = DaemonTokenState & {
  /** A new current token; the one before stays valid, the one before that does not. */
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

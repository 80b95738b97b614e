import { equalText } from './secrets.ts'

/**
 * The tokens that act as the keeper account (contract 2, section 7), handed in by the library option
 * `daemon_token_state`. Only the test kit makes one; without the option the header is ignored.
 */
export type DaemonTokenState = {
  current: string
  /** Still accepted while clients change over. */
  previous?: string
}

/** Compares with both tokens, whichever matches first, in constant time each. */
export function isDaemonToken(state: DaemonTokenState | undefined, token: string): boolean {
  if (!state) return false
  const isCurrent = equalText(state.current, token)
  const isPrevious = state.previous !== undefined && equalText(state.previous, token)
  return isCurrent || isPrevious
}

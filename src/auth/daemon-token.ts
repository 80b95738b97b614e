import { batched } from '../db/batched.ts'
import { readPrivateFile } from '../files/private-file.ts'
import { equalText, tokenForm } from './secrets.ts'

/** The tokens that act as the keeper account; the library option `daemon_token_state`. */
export type DaemonTokenState = {
  current: string
  /** Still accepted while clients switch to the current one. */
  previous?: string
}

/** Tells whether a daemon token is valid now; without a file or a state, none is. */
export type DaemonTokens = { holds(token: string): Promise<boolean> }

/** Always compares with both tokens, each in constant time. */
function isOneOf({ current, previous }: DaemonTokenState, token: string): boolean {
  const isCurrent = equalText(current, token)
  const isPrevious = previous !== undefined && equalText(previous, token)
  return isCurrent || isPrevious
}

type Warn = { warn(fields: object, text: string): void }

/**
 * Reads the file for every request that presents a token, so that a rotation applies to the next one. Waiting
 * requests share one read, so guessing strangers cause at most two reads at a time.
 */
export function createDaemonTokens(
  { state, path }: { state?: DaemonTokenState | undefined; path: string | null },
  log: Warn,
): DaemonTokens | undefined {
  if (!state && path === null) return undefined
  let told: string | undefined
  const readOne = batched<DaemonTokenState>(async ([file = '']) => {
    const read = await readDaemonTokenFile(file)
    const problem = 'problem' in read ? read.problem : undefined
    if (problem !== undefined && problem !== told)
      log.warn(
        { event: 'daemon_token', path: file, problem },
        'the daemon token file cannot be used; no daemon token is accepted',
      )
    told = problem
    return new Map('problem' in read ? [] : [[file, read]])
  })
  return {
    holds: async (token) => {
      if (state && isOneOf(state, token)) return true
      const kept = path === null ? undefined : await readOne(path)
      return kept !== undefined && isOneOf(kept, token)
    },
  }
}

/** Reads `daemon_token_file`: the current token, and on a second line the previous one while it is valid. */
export async function readDaemonTokenFile(
  path: string,
): Promise<DaemonTokenState | { problem: string; missing?: true }> {
  const file = await readPrivateFile(path)
  if ('problem' in file) return file
  const [current = '', previous, ...more] = file.content.split(/\s+/)
  if (more.length > 0 || ![current, previous ?? current].every((token) => tokenForm.test(token)))
    return { problem: 'does not hold one or two tokens as `cellkeep daemon-token rotate` writes them' }
  return { current, ...(previous !== undefined && { previous }) }
}

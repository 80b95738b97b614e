import { CellkeepError } from '../../src/client/client.ts'
import type { Refused } from '../copy/errors.ts'
import { noticeEnd } from './query.ts'

/** What a search finds, or why it failed. A text that nothing can be named finds nothing. */
export async function sought<T>(search: () => Promise<T[]>): Promise<{ found: T[]; error?: Refused }> {
  try {
    return { found: await search() }
  } catch (error) {
    if (!(error instanceof CellkeepError)) throw error
    noticeEnd(error)
    return error.reason === 'invalid_params' ? { found: [] } : { found: [], error }
  }
}

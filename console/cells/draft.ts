import { effect } from '@preact/signals'
import { signedIn } from '../api/session.ts'
import type { JsonObject } from '../lib/json.ts'

export type Base = { data: JsonObject; version: number }
type Draft = { account_id: string; base: Base; text: string }

/**
 * The unsaved text of each cell, only in memory: it survives Back and the end of a session, and is gone once another
 * account signs in.
 */
const drafts = new Map<string, Draft>()

effect(() => {
  const id = signedIn.value?.account.id
  if (id) for (const [cell_id, { account_id }] of drafts) if (account_id !== id) drafts.delete(cell_id)
})

addEventListener('beforeunload', (event) => {
  if (drafts.size > 0) event.preventDefault()
})

export const draftOf = (cell_id: string): Draft | null => drafts.get(cell_id) ?? null

export function keepDraft(cell_id: string, base: Base, text: string): void {
  const account_id = signedIn.peek()?.account.id
  if (account_id) drafts.set(cell_id, { account_id, base, text })
}

export const dropDraft = (cell_id: string): void => void drafts.delete(cell_id)

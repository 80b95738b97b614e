import { effect } from '@preact/signals'
import { signedIn } from '../api/session.ts'
import type { JsonObject } from '../lib/json.ts'

export type Base = { data: JsonObject; version: number }
type Draft = { account_id: string; cell_id: string; base: Base; text: string }

/** The unsaved text, only in memory: it survives the end of a session, and is gone once another account signs in. */
let draft: Draft | null = null

effect(() => {
  const id = signedIn.value?.account.id
  if (id && draft && draft.account_id !== id) draft = null
})

export const draftOf = (cell_id: string): Draft | null => (draft?.cell_id === cell_id ? draft : null)

export function keepDraft(cell_id: string, base: Base, text: string): void {
  const id = signedIn.peek()?.account.id
  if (id) draft = { account_id: id, cell_id, base, text }
}

export const dropDraft = (): void => {
  draft = null
}

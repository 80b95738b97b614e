import { createHmac } from 'node:crypto'
import type { Checks } from './relying-party.ts'

const derived = (token: string, label: string): string =>
  createHmac('sha256', token).update(label).digest('base64url')

/** Derived from the token of the flow cookie, so that nobody can finish the flow with what is stored. */
export const checksOf = (token: string): Checks => ({
  state: derived(token, 'state'),
  nonce: derived(token, 'nonce'),
  verifier: derived(token, 'pkce verifier'),
})

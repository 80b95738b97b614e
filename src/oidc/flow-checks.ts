import { createHmac } from 'node:crypto'
import type { Checks } from './relying-party.ts'

const derived = (token: string, label: string): string =>
  createHmac('sha256', token).update(label).digest('base64url')

/** Made from the token of the flow cookie, so that nothing stored lets anybody finish the flow. */
export const checksOf = (token: string): Checks => ({
  state: derived(token, 'state'),
  nonce: derived(token, 'nonce'),
  verifier: derived(token, 'pkce verifier'),
})

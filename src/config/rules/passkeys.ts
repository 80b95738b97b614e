import { passkeyFaults } from '../passkeys.ts'
import type { Config } from '../table.ts'
import type { RuleContext } from './context.ts'

/** The rules of the settings about passkeys, checked only if passkeys are asked for. */
export function brokenPasskeys(config: Config, { label, isGiven, isBroken }: RuleContext): string[] {
  const keys = ['rp_id', 'passkey_origins', 'public_url'] as const
  const isAsked = isGiven('passkeys') ? config.passkeys : isGiven('rp_id') || isGiven('passkey_origins')
  return isAsked && !keys.some(isBroken) ? passkeyFaults(config, label) : []
}

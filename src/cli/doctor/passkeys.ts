import type { ParsedConfig } from '../../config/config.ts'
import { passkeyFaults } from '../../config/passkeys.ts'
import { counted } from '../../core/operation.ts'
import { type Database, sql } from '../../db/db.ts'
import type { Finding } from './finding.ts'

/** A finding only if a public URL is set: without one, passkeys are not expected to work. */
export function passkeysOff({ config, sources }: Pick<ParsedConfig, 'config' | 'sources'>): Finding[] {
  if (config.passkeys || sources.passkeys !== 'default' || sources.public_url === 'default') return []
  return [
    {
      finding: 'passkeys_off',
      what: `Nobody can sign in with a passkey: ${passkeyFaults(config, (key) => key).join('; ')}.`,
      remedy: 'Correct this, or set CELLKEEP_PASSKEYS=false.',
    },
  ]
}

export async function orphanedPasskeys(
  db: Database,
  { config }: Pick<ParsedConfig, 'config'>,
): Promise<Finding[]> {
  const { count } = await db.one<{ count: number }>(sql`
    select count(*) from account_passkey where rp_id is distinct from ${config.rp_id}`)
  if (count === 0) return []
  const passkeys = counted(count, 'passkey')
  return [
    {
      finding: 'orphaned_passkeys',
      ...(config.rp_id === null
        ? {
            what: `${passkeys} can no longer sign in, because no domain for passkeys is set.`,
            remedy: 'Set CELLKEEP_PUBLIC_URL to an address with the domain that they belong to.',
          }
        : {
            what: `${passkeys} can no longer sign in, because the domain is now ${config.rp_id}.`,
            remedy: 'Set CELLKEEP_RP_ID back, or have the owners add new passkeys and remove these.',
          }),
    },
  ]
}

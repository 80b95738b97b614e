import { type Database, sql } from '../../db/db.ts'
import type { Opened } from '../with-service.ts'
import type { Finding } from './finding.ts'

/** Links to providers that are no longer configured admit nobody. */
export async function linkFindings(db: Database, { parsed }: Opened): Promise<Finding[]> {
  const issuers = (parsed.declarations.oidc ?? []).map(({ issuer }) => issuer)
  const { links, providers } = await db.one<{ links: number; providers: string[] }>(sql`
    select count(*)::int as links, array_agg(distinct provider order by provider) as providers
    from account_link where issuer <> all(${issuers}::text[])`)
  if (links === 0) return []
  return [
    {
      finding: 'orphaned_links',
      what: `Accounts linked to a provider that the config file does not name (${providers.join(', ')}): ${links}.`,
      remedy:
        'If your application configures it in code, which no command reads, all is well. Else configure the provider again with its former issuer, or send a reset link to people who have no other way to sign in: `cellkeep account reset-link`.',
    },
  ]
}

import type { OidcProvider } from './oidc.ts'
import type { Config, Key } from './table.ts'

/** Whether people may add TOTP: it needs keys that seal its secrets. */
export const hasTotp = ({
  second_factor,
  secret_keys,
  database_url,
}: Pick<Config, 'second_factor' | 'secret_keys' | 'database_url'>): boolean =>
  second_factor && (secret_keys !== null || database_url === null)

/** A startup warning where roles require a second factor that nobody can add. */
export function missingSecondFactor(
  config: Config,
  label: (key: Key) => string,
  providers: readonly OidcProvider[],
): string[] {
  const canAdd = hasTotp(config) || config.passkeys || providers.some(({ second_factor }) => second_factor)
  if (config.require_second_factor.length === 0 || canAdd) return []
  return [
    `${label('require_second_factor')} locks out holders of these roles, because nobody can add a second factor here: ` +
      `set ${label('secret_keys')} for TOTP, or ${label('public_url')} for passkeys`,
  ]
}

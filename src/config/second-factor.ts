import { builtinRoles } from '../registry/registry.ts'
import { meant } from '../wire/closest.ts'
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

/** A misspelled role would hold nobody to a second factor. The forms of the consumer's roles are not checked yet. */
export function unregisteredRoles(
  { require_second_factor }: Pick<Config, 'require_second_factor'>,
  label: (key: Key) => string,
  own: readonly unknown[] = [],
): string[] {
  const names = [...builtinRoles, ...own].map((role) => (role as { name?: unknown } | null)?.name)
  const texts = names.filter((name) => typeof name === 'string')
  return require_second_factor.flatMap((role, index) =>
    texts.includes(role)
      ? []
      : [
          `${label('require_second_factor')} entry ${index + 1} must be a registered role${meant(role, texts, '; declare it in roles')}`,
        ],
  )
}

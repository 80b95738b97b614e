import { actions } from '../src/actions.ts'
import type { Method } from '../src/core/method.ts'
import { routeList } from '../src/routes.ts'

/** What has to be on for the methods and routes that a service may lack. */
const features: Readonly<Record<string, readonly string[]>> = {
  'Only with `CELLKEEP_USERNAME_CHANGE=self`.': ['account_username_change'],
  'Not with `CELLKEEP_USERNAME_CHANGE=off`.': ['admin_account_username_set'],
  'Not with `CELLKEEP_ACTOR_RENAME=false`.': ['actor_rename'],
  'Not with `CELLKEEP_SIGNUP=false`.': ['/signup'],
  'Not with `CELLKEEP_BOOTSTRAP=disabled`, the default of the library.': ['/bootstrap'],
  'Not with `CELLKEEP_APP_SETTINGS=false`, the default of the library.': [
    'app_settings_get',
    'app_settings_update',
  ],
  'Not with `CELLKEEP_OPENRPC=off`.': ['rpc.discover'],
  'Not with `CELLKEEP_SECOND_FACTOR=false`, and only with [secret keys](operations.md#keys).': [
    'account_totp_enrol',
    'account_totp_confirm',
  ],
  'Only with [passkeys](sign-in.md#passkeys).': [
    'account_passkey_register_begin',
    'account_passkey_register_finish',
    'account_passkey_rename',
    'account_passkey_remove',
    '/passkey_begin',
    '/passkey_finish',
  ],
  'Only with a [provider](sign-in.md#sign-in-with-a-provider).': [
    'account_link_remove',
    '/oidc_start',
    '/oidc_finish',
  ],
  'Only with a [transport](sign-in.md#messages).': [
    'account_email_change',
    'account_email_verify_send',
    '/email_confirm',
  ],
  'Only with a [transport](sign-in.md#messages), and not with `CELLKEEP_RECOVERY=false`.': ['/recover'],
  'Only with [`self_service_roles`](declarations.md#who-gives-roles).': ['self_service_role_set'],
}

const needs = new Map(
  Object.entries(features).flatMap(([text, names]) => names.map((name) => [name, ` ${text}`] as const)),
)

/** When the method or route of this name exists, if not always; begins with a blank. */
export const needsOf = (name: string): string => needs.get(name) ?? ''

/** The names that the table lacks, and those that it should not have. */
export function wrongFeatures(): string[] {
  const all: [string, boolean][] = [
    ...Object.entries<Method>(actions as Record<string, Method>).map(
      ([name, { enabled }]): [string, boolean] => [name, enabled !== undefined],
    ),
    ...routeList.map(({ path, enabled }): [string, boolean] => [path, enabled !== undefined]),
  ]
  const known = new Set(all.map(([name]) => name))
  return [
    ...all.filter(([name, isOptional]) => needs.has(name) !== isOptional).map(([name]) => name),
    ...[...needs.keys()].filter((name) => !known.has(name)),
  ]
}

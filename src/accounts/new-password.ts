import type { App } from '../core/app.ts'
import { refusal } from '../errors.ts'
import { type Issue, issue } from '../wire/issues.ts'
import { fold } from './formats.ts'

/** The names of an account that others may know: no password may consist of one. */
type Names = { username: string; email?: string | null | undefined }

/** Checks beyond the schema: the configured minimum, the blocklist, and the names of the service and the account. */
export function refuseWeak(
  { config, blocklist }: App,
  as: 'invalid_request_body' | 'invalid_params',
  [key, password]: readonly [key: string, password: string],
  names?: Names,
): void {
  const refuse = (...rest: Parameters<typeof issue>): never => {
    throw refusal(as, { issues: [issue(...rest)] satisfies Issue[] })
  }
  const min = config.password_min
  if ([...password].length < min) refuse([key], 'too_small', `At least ${min} characters.`)
  const folded = fold(password)
  if (blocklist(folded) || [config.site_name, ...namesOf(names)].some((name) => fold(name) === folded))
    refuse([key], 'password_common')
}

const namesOf = (names: Names | undefined): string[] => {
  if (!names) return []
  const { username, email } = names
  return email ? [username, email, email.slice(0, email.indexOf('@'))] : [username]
}

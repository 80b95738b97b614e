import { z } from 'zod'
import { isSafeUrl } from './ip.ts'
import type { Broken } from './kinds.ts'
import { isInstalled } from './packages.ts'

/** A field of a provider with the rule that completes "must be …" for any fault of it. */
const field = <S extends z.ZodType>(rule: string, schema: S): S => schema.describe(rule)

const text = z.string().min(1)
const domain = z.string().regex(/^[^\s@.]+(\.[^\s@.]+)+$/)

const entry = z.strictObject({
  /** Names the provider in paths, audit rows and the variable of its secret. */
  id: field('1 to 32 of a-z, 0-9 and _, beginning with a letter', z.string().regex(/^[a-z][a-z0-9_]{0,31}$/)),
  /** What people read; by default the id. */
  label: field(
    '1 to 60 characters without control characters',
    z
      .string()
      .regex(/^\P{Cc}{1,60}$/u)
      .optional(),
  ),
  /** Exactly as in the metadata of the provider. */
  issuer: field(
    'an https URL without user, query and fragment; http only for a loopback host, with CELLKEEP_ENV=development',
    z.string().refine((issuer) => isIssuer(issuer)),
  ),
  client_id: field('a text', text),
  /** Or in the environment: `CELLKEEP_OIDC_<ID>_CLIENT_SECRET`. */
  client_secret: field('a text', text.optional()),
  /** By default `client_secret_basic` with a secret, else `none`. */
  client_auth: field(
    'client_secret_basic, client_secret_post or none',
    z.enum(['client_secret_basic', 'client_secret_post', 'none']).optional(),
  ),
  scopes: field(
    'scopes separated by spaces, openid among them',
    z
      .string()
      .regex(/^[!-~]+( [!-~]+)*$/)
      .refine((scopes) => scopes.split(' ').includes('openid'))
      .default('openid email profile'),
  ),
  /** The names of these claims, if the provider uses others. */
  claims: field(
    'an object with names of claims for username, email, email_verified and name',
    z
      .strictObject({
        username: text.default('preferred_username'),
        email: text.default('email'),
        email_verified: text.default('email_verified'),
        name: text.default('name'),
      })
      .prefault({}),
  ),
  /** Asks the userinfo endpoint for more claims. */
  userinfo: field('true or false', z.boolean().default(false)),
  /** Claims that must have exactly these values at every sign-in, such as `hd` or `tid`. */
  required_claims: field(
    'an object of texts, numbers and booleans',
    z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
  ),
  /** The verified e-mail must be in one of these domains at every sign-in. */
  allowed_domains: field('a list of domains', z.array(domain).min(1).readonly().optional()),
  /** What to do if an identity belongs to no account. */
  on_unknown: field(
    'refuse, invite_only or signup',
    z.enum(['refuse', 'invite_only', 'signup']).default('refuse'),
  ),
  /**
   * `both_verified`: an unknown identity is linked to the account with its e-mail, if both have verified it. Never to
   * that of an admin or keeper, nor past a second factor that the ID token does not prove.
   */
  auto_link: field('never or both_verified', z.enum(['never', 'both_verified']).default('never')),
  /** A missing `email_verified` counts as true. */
  trust_email: field('true or false', z.boolean().default(false)),
  /** An ID token with one of these values of `acr` or `amr` proves a second factor. */
  second_factor: field(
    'an object with a list of texts as acr or amr',
    z
      .union([
        z.strictObject({ acr: z.array(text).min(1).readonly() }),
        z.strictObject({ amr: z.array(text).min(1).readonly() }),
      ])
      .optional(),
  ),
})

export type OidcProviderOptions = z.input<typeof entry>
export type OidcProvider = z.output<typeof entry> & {
  label: string
  client_auth: 'client_secret_basic' | 'client_secret_post' | 'none'
}

/** The variables of client secrets, by the id of their provider in upper case. */
export const secretVariable = /^CELLKEEP_OIDC_(.+)_CLIENT_SECRET$/

type Reading = {
  /** Names the list in problems. */
  label: string
  /** From the environment, by the name of the variable; one that cannot be read has already been reported. */
  secrets: ReadonlyMap<string, string | Broken>
  serves: boolean
  isDevelopment: boolean
  /**
   * What is missing to know the URL that providers redirect to: a setting, and the words after `when`. Null: nothing.
   */
  missing: { setting: string; when: string } | null
}

/** The providers, and what is wrong with them; no problem quotes a value. */
export function readProviders(given: readonly unknown[], reading: Reading) {
  const { label, secrets, serves, isDevelopment, missing } = reading
  const problems: string[] = []
  if (serves && given.length > 0 && !isInstalled('openid-client'))
    problems.push(`${label} needs the package openid-client: run \`npm install openid-client@6\``)
  if (serves && given.length > 0 && missing !== null)
    problems.push(`${missing.setting} is required for ${label} when ${missing.when}`)
  const providers: OidcProvider[] = []
  given.forEach((one, index) => {
    const refuse = (what: string) => void problems.push(`${label} entry ${index + 1} ${what}`)
    const parsed = entry.safeParse(one)
    if (!parsed.success) {
      problemsOf(parsed.error).forEach(refuse)
      return
    }
    const { id, issuer } = parsed.data
    const variable = `CELLKEEP_OIDC_${id.toUpperCase()}_CLIENT_SECRET`
    const fromEnv = secrets.get(variable)
    const client_secret = typeof fromEnv === 'string' ? fromEnv : parsed.data.client_secret
    const client_auth =
      parsed.data.client_auth ?? (client_secret === undefined ? 'none' : 'client_secret_basic')
    if (providers.some((other) => other.id === id)) refuse('has the same id as another provider')
    if (!isDevelopment && issuer.startsWith('http:'))
      refuse(`issuer must be ${entry.shape.issuer.description}`)
    if (serves && client_auth !== 'none' && client_secret === undefined && fromEnv === undefined)
      refuse(`needs a secret for client_auth: set ${variable}`)
    if (parsed.data.auto_link === 'both_verified' && !parsed.data.allowed_domains)
      refuse(
        'needs allowed_domains for auto_link; without it, whoever runs the provider could enter any account',
      )
    providers.push({ label: id, ...parsed.data, client_auth, ...(client_secret && { client_secret }) })
  })
  const ids = given.map((one) => String((one as { id?: unknown } | null)?.id).toUpperCase())
  for (const name of secrets.keys())
    if (!ids.includes(secretVariable.exec(name)?.[1] ?? ''))
      problems.push(`${name} is for a provider that is not configured`)
  return { providers, problems }
}

function problemsOf({ issues }: z.ZodError): string[] {
  const found = issues.map((issue) => {
    const key = issue.path[0]
    if (issue.code === 'unrecognized_keys' && key === undefined)
      return `has an unknown key (keys: ${Object.keys(entry.shape).join(', ')})`
    const rule = entry.shape[key as keyof typeof entry.shape]?.description
    return rule === undefined ? 'must be an object' : `${String(key)} must be ${rule}`
  })
  return [...new Set(found)]
}

function isIssuer(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && !/[?#@]/.test(text) && isSafeUrl(url)
}

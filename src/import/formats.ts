import { parseOptions } from '@node-rs/argon2'
import { z } from 'zod'
import { isBearable, parseForeign } from '../auth/foreign-hashes.ts'

/** Parameters of a Firebase project, as its console shows them, as JSON. */
export const FirebaseParams = z.object({
  base64_signer_key: z.string().min(1),
  base64_salt_separator: z.string(),
  rounds: z.int().min(1).max(1024),
  mem_cost: z.int().min(1).max(30),
})
export type FirebaseParams = z.output<typeof FirebaseParams>

const jsonText = <T extends z.ZodType>(schema: T) =>
  z.union([
    schema,
    z.string().transform((text, context) => {
      const parsed = schema.safeParse(fromJson(text))
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: 'Not the JSON of a credential.' })
      return z.NEVER
    }),
  ])

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const one = z.tuple([z.string()])
const Keycloak = z.strictObject({
  credentialData: jsonText(
    z.object({
      algorithm: z.string(),
      hashIterations: z.int(),
      additionalParameters: z
        .object({ type: one, version: one, memory: one, parallelism: one })
        .partial()
        .optional(),
    }),
  ),
  secretData: jsonText(z.object({ value: z.string(), salt: z.string() })),
})
type Keycloak = z.output<typeof Keycloak>

const Firebase = z.strictObject({ hash: z.string().max(1024), salt: z.string().max(1024) })

/** The hash of a line, in any of the accepted formats. */
export const ForeignPassword = z.union([z.string().min(1).max(1024), Firebase, Keycloak])
export type ForeignPassword = z.output<typeof ForeignPassword>

type Unusable = 'hash_unsupported' | 'hash_too_costly'

/** The text that is stored for a hash of another system. */
export function storedHash(
  given: ForeignPassword,
  firebase: FirebaseParams | undefined,
): { stored: string } | Unusable {
  const stored =
    typeof given === 'string'
      ? fromText(given)
      : 'hash' in given
        ? firebase && fromFirebase(given, firebase)
        : fromKeycloak(given)
  if (stored === undefined) return 'hash_unsupported'
  if (stored.startsWith('$argon2')) return argon2(stored)
  const foreign = parseForeign(stored)
  if (!foreign) return 'hash_unsupported'
  return isBearable(foreign) ? { stored } : 'hash_too_costly'
}

const argon2Form =
  /^\$argon2(id|i|d)\$v=(19|16)\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{22,171}$/

function argon2(given: string): { stored: string } | Unusable {
  // The npm package `argon2` sorts the parameters by name: m, p, t.
  const stored = given.replace(/(?<=^[^=]+=\d+\$)[mtp]=\d+,[mtp]=\d+,[mtp]=\d+/, (costs) =>
    costs.split(',').sort(inOrder).join(','),
  )
  if (!argon2Form.test(stored)) return 'hash_unsupported'
  try {
    const { memoryCost, timeCost, parallelism } = parseOptions(stored)
    return memoryCost > 262_144 || timeCost > 64 || parallelism > 64 ? 'hash_too_costly' : { stored }
  } catch {
    return 'hash_unsupported'
  }
}

const inOrder = (one: string, other: string): number =>
  'mtp'.indexOf(one.charAt(0)) - 'mtp'.indexOf(other.charAt(0))

type Rule = readonly [form: RegExp, make: (...groups: string[]) => string | undefined]

/** The formats of other systems, besides texts that are stored as they are. */
const rules: readonly Rule[] = [
  // Django
  [/^argon2(\$argon2.+)$/, (phc) => phc],
  [/^bcrypt\$(\$2.+)$/, (text) => text],
  [/^bcrypt_sha256\$(\$2.+)$/, (text) => `$django-bcrypt-sha256${text}`],
  [
    /^pbkdf2_(sha1|sha256)\$(\d+)\$([^$]+)\$([^$]+)$/,
    (digest = '', rounds = '', salt = '', key = '') =>
      keyed(`pbkdf2-${digest}`, `i=${rounds}`, Buffer.from(salt), plain(key)),
  ],
  [
    /^scrypt\$(\d+)\$([^$]+)\$(\d+)\$(\d+)\$([^$]+)$/,
    (n, salt = '', r = '', p = '', key = '') =>
      scrypt('', Number(n), `r=${r},p=${p}`, Buffer.from(salt), plain(key)),
  ],
  // better-auth: the salt is its hex digits, as text.
  [
    /^([0-9a-f]{32}):([0-9a-f]{128})$/,
    (salt = '', key = '') => scrypt('-nfkc', 16_384, 'r=16,p=1', Buffer.from(salt), Buffer.from(key, 'hex')),
  ],
  // passlib
  [
    /^\$pbkdf2-(sha256|sha512)\$(?:i=)?(\d+)(?:,l=\d+)?\$([^$]+)\$([^$]+)$/,
    (digest = '', rounds = '', salt = '', key = '') =>
      keyed(`pbkdf2-${digest}`, `i=${rounds}`, dotted(salt), dotted(key)),
  ],
  [
    /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/,
    (ln, r, p, salt = '', key = '') => keyed('scrypt', `ln=${ln},r=${r},p=${p}`, dotted(salt), dotted(key)),
  ],
  [/^(\$(?:argon2|2[aby]\$).+)$/, (text) => text],
]

function fromText(given: string): string | undefined {
  for (const [form, make] of rules) {
    const found = form.exec(given)
    if (found) return make(...found.slice(1))
  }
  return undefined
}

function scrypt(variant: string, n: number, rest: string, salt?: Buffer, key?: Buffer): string | undefined {
  const ln = Math.log2(n)
  return Number.isInteger(ln) ? keyed(`scrypt${variant}`, `ln=${ln},${rest}`, salt, key) : undefined
}

/** The stored text; undefined without a salt or key. */
function keyed(name: string, cost: string, salt?: Buffer, key?: Buffer): string | undefined {
  if (!salt?.length || !key?.length) return undefined
  const [saltText, keyText] = [salt, key].map((bytes) => bytes.toString('base64').replaceAll('=', ''))
  return `$${name}$${cost}$${saltText}$${keyText}`
}

/** Undefined for a text that is not base64 from end to end. */
const plain = (text: string): Buffer | undefined =>
  /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
/** Base64 with a dot for the plus, as passlib writes it. */
const dotted = (text: string): Buffer | undefined => plain(text.replaceAll('.', '+'))
/** Firebase writes either alphabet. */
const webSafe = (text: string): Buffer | undefined => plain(text.replaceAll('-', '+').replaceAll('_', '/'))

function fromKeycloak({ credentialData, secretData }: Keycloak): string | undefined {
  const { algorithm, hashIterations, additionalParameters: more = {} } = credentialData
  const [salt, key] = [plain(secretData.salt), plain(secretData.value)]
  if (algorithm === 'argon2') {
    const [type, memory, lanes] = [more.type?.[0], more.memory?.[0], more.parallelism?.[0]]
    const version = more.version?.[0] === '1.0' ? 16 : 19
    return keyed(`argon2${type}$v=${version}`, `m=${memory},t=${hashIterations},p=${lanes}`, salt, key)
  }
  const digest = { pbkdf2: 'sha1', 'pbkdf2-sha256': 'sha256', 'pbkdf2-sha512': 'sha512' }[algorithm]
  return digest && keyed(`pbkdf2-${digest}`, `i=${hashIterations}`, salt, key)
}

function fromFirebase(
  { hash, salt }: z.output<typeof Firebase>,
  project: FirebaseParams,
): string | undefined {
  const { base64_signer_key, base64_salt_separator, rounds, mem_cost } = project
  const [signer, made, own] = [webSafe(base64_signer_key), webSafe(hash), webSafe(salt)]
  const separator = base64_salt_separator === '' ? Buffer.alloc(0) : webSafe(base64_salt_separator)
  if (!signer || !made || !own || !separator || signer.length !== made.length) return undefined
  const key = Buffer.from(made.map((byte, at) => byte ^ (signer[at] as number)))
  return keyed('scrypt-firebase', `ln=${mem_cost},r=${rounds},p=1`, Buffer.concat([own, separator]), key)
}

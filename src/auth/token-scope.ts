import { z } from 'zod'
import type { TokenScope } from './identity.ts'

/** The scope that a caller may ask for; the method checks that each name in it exists. */
export const ScopeInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('full') }),
  z.strictObject({ kind: z.literal('read_only') }),
  z.strictObject({ kind: z.literal('methods'), methods: z.array(z.string()).min(1).max(100) }),
])

const version = 1

/** The stored form of a scope; `version` says how to read it. */
export const storedScope = (scope: TokenScope): string =>
  JSON.stringify({
    version,
    kind: scope.kind,
    ...(scope.kind === 'methods' && { methods: [...new Set(scope.methods)].sort() }),
  })

const Stored = z.discriminatedUnion('kind', [
  z.strictObject({ version: z.literal(version), kind: z.literal('full') }),
  z.strictObject({ version: z.literal(version), kind: z.literal('read_only') }),
  z.strictObject({
    version: z.literal(version),
    kind: z.literal('methods'),
    methods: z.array(z.string()).min(1),
  }),
])

/** The scope of a token, or null if this version cannot read it: such a token is not a valid credential. */
export function readScope(stored: unknown): TokenScope | null {
  const parsed = Stored.safeParse(stored)
  if (!parsed.success) return null
  const { version: _, ...scope } = parsed.data
  return scope
}

/** Quotes a name with unusual characters, so that it cannot be read as two. */
const shown = (method: string): string => (/^[\w.-]+$/.test(method) ? method : JSON.stringify(method))

/** A scope as displayed: `full`, `read_only`, `methods:<names>` or `unreadable`. */
export function scopeLabel(stored: unknown): string {
  const scope = readScope(stored)
  if (!scope) return 'unreadable'
  return scope.kind === 'methods' ? `methods:${[...scope.methods].sort().map(shown).join(',')}` : scope.kind
}

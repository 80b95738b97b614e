import { z } from 'zod'
import type { TokenScope } from './identity.ts'

/** What a caller may ask for (contract 2, section 6); that each method is wired is checked by the verb. */
export const ScopeInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('full') }),
  z.strictObject({ kind: z.literal('read_only') }),
  z.strictObject({ kind: z.literal('methods'), methods: z.array(z.string()).min(1).max(100) }),
])

const version = 1

/** The stored form; its version says how to read it. */
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

/** The scope of a token, or null where this version cannot read it: such a token is no credential. */
export function readScope(stored: unknown): TokenScope | null {
  const parsed = Stored.safeParse(stored)
  if (!parsed.success) return null
  const { version: _, ...scope } = parsed.data
  return scope
}

/** A name that is no word stands in quotes, so that no name reads as two. */
const shown = (method: string): string => (/^[\w.-]+$/.test(method) ? method : JSON.stringify(method))

/** How a scope is shown: `full`, `read_only`, `methods:<names>`, `unreadable`. */
export function scopeLabel(stored: unknown): string {
  const scope = readScope(stored)
  if (!scope) return 'unreadable'
  return scope.kind === 'methods' ? `methods:${[...scope.methods].sort().map(shown).join(',')}` : scope.kind
}

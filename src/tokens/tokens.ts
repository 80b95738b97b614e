import { z } from 'zod'
import { scopeLabel } from '../auth/token-scope.ts'
import { sql } from '../db/db.ts'
import { worded } from '../wire/rules.ts'
import { characters, lengths, noControls, Uuid } from '../wire/types.ts'

/** Wire form of a token in lists: its scope as a label, never its secret. */
export const TokenEntry = z.object({
  id: z.string(),
  account_id: Uuid,
  name: z.string(),
  scope: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
  last_used_ip: z.string().nullable(),
})
export type TokenEntry = z.output<typeof TokenEntry>

export const tokenColumns = sql`id, account_id, name, scope, created_at, expires_at, last_used_at, last_used_ip`

export const toEntry = (row: Omit<TokenEntry, 'scope'> & { scope: unknown }): TokenEntry => ({
  ...row,
  scope: scopeLabel(row.scope),
})

export const ApiTokenId = z
  .string()
  .regex(worded(/^tok_[A-Za-z0-9_-]{12}$/, 'The id of a token is required: tok_ and 12 characters.'))

const nameMax = 100

/** 1 to 100 code points after trimming, no control characters. */
export const TokenName = z
  .string()
  .regex(noControls)
  .trim()
  .check(characters(1, nameMax))
  .meta(lengths(1, nameMax))

/** The scope that a command names: `full`, `read_only`, or methods separated by commas. */
export const scopeNamed = (text: string) =>
  text === 'full' || text === 'read_only'
    ? ({ kind: text } as const)
    : ({ kind: 'methods', methods: text.split(',') } as const)

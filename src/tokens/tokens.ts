import { z } from 'zod'
import { scopeLabel } from '../auth/token-scope.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

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

export const ApiTokenId = z.string().regex(/^tok_[A-Za-z0-9_-]{12}$/)

const nameMax = 100

/** 1 to 100 code points after trimming, no control characters. */
export const TokenName = z
  .string()
  .refine((name) => !/\p{Cc}/u.test(name), { params: { code: 'invalid_format' } })
  .trim()
  .superRefine((name, context) => {
    const length = [...name].length
    if (length === 0) context.addIssue({ code: 'custom', params: { code: 'too_small' }, message: '' })
    if (length > nameMax) context.addIssue({ code: 'custom', params: { code: 'too_big' }, message: '' })
  })
